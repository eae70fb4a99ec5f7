// The job's key: 32 secret bytes that only its processes have.
#pragma once
#include <optional>
#include <string>

#include "comm/secret.h"

namespace skein::apps {

// The key that was passed to this process by the descriptor SKEIN_KEY_FD or the file SKEIN_KEY_FILE. Throws
// BadFile if other users can read the file or it has less than 32 bytes.
std::optional<comm::Secret> given_job_key();
// Derives a key from `key` and the name of one start of a job, so that other starts with the
// same `key` cannot join.
comm::Secret key_of_start(const comm::Secret& key, const std::string& start);
// Throws BadFile if the file is not ours or other users can read it.
void check_private(int fd, const std::string& path);

}  // namespace skein::apps
