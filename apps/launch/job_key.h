// The job's key: 32 secret bytes that all its processes and nobody else have.
#pragma once
#include <optional>
#include <string>

namespace skein::apps {

// The one that was handed to us: from the descriptor SKEIN_KEY_FD or the file SKEIN_KEY_FILE. Throws BadFile
// if others could read the file or it has less than 32 bytes.
std::optional<std::string> given_job_key();
// ~/.config/skein/job-key, which is made where it is missing; for workers started by
// hand. Throws BadFile, BadOption.
std::string job_key_of_home();
// A key that follows from `key` and the name of one start of a job: other starts under the
// same key are strangers.
std::string key_of_start(const std::string& key, const std::string& start);
// Throws BadFile if the file is not ours or others could read it.
void check_private(int fd, const std::string& path);

}  // namespace skein::apps
