// A context, its list of resources, and a worker that is given up at once.
#include "comm/ucx_look.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "comm/ucx_library.h"

namespace skein::comm {
namespace {

// Lines like "#      resource 2  :  md 1  dev 2  flags -- tcp/eth0".
std::vector<std::string> resources_of(ucp_context_h context) {
  char* words = nullptr;
  size_t n = 0;
  FILE* f = open_memstream(&words, &n);
  ucx().ucp_context_print_info(context, f);
  fclose(f);
  std::istringstream all(std::string(words, n));
  free(words);
  std::vector<std::string> found;
  for (std::string line; std::getline(all, line);)
    if (line.find(" resource ") != std::string::npos && line.find('/') != std::string::npos)
      found.push_back(line.substr(line.find_last_of(' ') + 1));
  return found;
}

}  // namespace

UcxFacts look_at_ucx() {
  UcxFacts facts;
  setenv("UCX_LOG_LEVEL", "fatal", 0);  // what goes wrong is told in our words
  facts.version = ucx().ucp_get_version_string();
  facts.version = facts.version.substr(0, facts.version.find(' '));
  ucp_config_t* config = nullptr;
  check(ucx().ucp_config_read(nullptr, nullptr, &config), "ucp_config_read");
  ucp_params_t p{};
  p.field_mask = UCP_PARAM_FIELD_FEATURES;
  p.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  ucp_context_h context = nullptr;
  const ucs_status_t s = ucx().ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &p, config, &context);
  ucx().ucp_config_release(config);
  if (s != UCS_OK) {
    facts.trouble = ucx().ucs_status_string(s);
    return facts;
  }
  facts.resources = resources_of(context);
  ucp_worker_params_t w{};
  w.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  w.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  if (const ucs_status_t made = ucx().ucp_worker_create(context, &w, &worker); made == UCS_OK)
    ucx().ucp_worker_destroy(worker);
  else
    facts.trouble = ucx().ucs_status_string(made);
  ucx().ucp_cleanup(context);
  return facts;
}

}  // namespace skein::comm
