// Makes a context, reads its list of resources, and starts a worker that ends at once.
#include "comm/ucx/ucx_look.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "comm/ucx/ucx_library.h"
#include "engine/base.h"

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

// UCX is asked, because the version tells little: a build with CUDA moves no GPU memory without a driver.
bool moves_cuda(ucp_context_h context) {
  ucp_context_attr_t a{};
  a.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  check(ucx().ucp_context_query(context, &a), "ucp_context_query");
  return UCS_BIT(UCS_MEMORY_TYPE_CUDA) & a.memory_types;
}

}  // namespace

UcxFacts look_at_ucx() {
  UcxFacts facts;
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
  facts.moves_cuda = moves_cuda(context);
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

std::string ucx_cuda_trouble() try {
  const UcxFacts facts = look_at_ucx();
  if (facts.moves_cuda) return "";
  return text("UCX ", facts.version, " does not move a GPU's memory here",
              facts.trouble.empty() ? "" : " (" + facts.trouble + ")",
              "; one that does comes with: pip install libucx-cu13, SKEIN_UCX_LIBRARY=the folder of its "
              "libucp.so.0");
} catch (const Error& e) { return e.what(); }

}  // namespace skein::comm
