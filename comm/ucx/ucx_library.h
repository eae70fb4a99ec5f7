// UCX's functions, looked up when they are first needed, so that a program starts where UCX is not installed.
#pragma once
#include <ucp/api/ucp.h>

#include <string>

namespace skein::comm {

// One row per function that the program calls.
// clang-format off
#define SKEIN_UCX_FUNCTIONS(ROW) \
  ROW(ucp_config_read) \
  ROW(ucp_config_modify) \
  ROW(ucp_config_release) \
  ROW(ucp_init_version) \
  ROW(ucp_cleanup) \
  ROW(ucp_context_print_info) \
  ROW(ucp_context_query) \
  ROW(ucp_worker_create) \
  ROW(ucp_worker_destroy) \
  ROW(ucp_worker_get_address) \
  ROW(ucp_worker_release_address) \
  ROW(ucp_worker_set_am_recv_handler) \
  ROW(ucp_worker_progress) \
  ROW(ucp_worker_get_efd) \
  ROW(ucp_worker_arm) \
  ROW(ucp_worker_signal) \
  ROW(ucp_ep_create) \
  ROW(ucp_ep_close_nbx) \
  ROW(ucp_ep_print_info) \
  ROW(ucp_am_send_nbx) \
  ROW(ucp_am_recv_data_nbx) \
  ROW(ucp_am_data_release) \
  ROW(ucp_request_free) \
  ROW(ucp_request_check_status) \
  ROW(ucp_get_version_string)
// clang-format on

struct Ucx {
#define SKEIN_UCX_MEMBER(name) decltype(&::name) name = nullptr;
  SKEIN_UCX_FUNCTIONS(SKEIN_UCX_MEMBER)
#undef SKEIN_UCX_MEMBER
  const char* (*ucs_status_string)(ucs_status_t) = nullptr;
};

// Opens the library: the file or folder that SKEIN_UCX_LIBRARY names, else what the loader finds. Throws an
// Error that says what to install.
Ucx open_ucx();
// Opens it on the first call.
const Ucx& ucx();
// Throws Error if the status is a failure.
void check(ucs_status_t, const char* what);

}  // namespace skein::comm
