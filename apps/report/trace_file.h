// --trace FILE: what all workers did, on one time line, for chrome://tracing and ui.perfetto.dev.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator/communicator.h"

namespace skein::apps {

// Spans named "update" are the frame of a step: what is left of them when waits and other work are cut out.
inline constexpr const char* kFrame = "update";
bool is_frame(const comm::Span&);
// Ordered by beginning, and of frames only what is neither other work nor waiting.
std::vector<comm::Span> in_order(std::vector<comm::Span>);

// One worker's events, one a line, each ended by a comma: a process named after the worker, with a thread for
// compute, one for waiting, and as many for transfers as are under way at once. Microseconds since `origin`.
std::string trace_events(int worker, std::vector<comm::Span>, double origin);

// Makes FILE, without events; throws BadFile. A run that is killed leaves this.
void begin_trace(const std::string& path);
// Collective; rank 0 of the communicator writes the file, atomically. Throws BadFile on every rank.
void end_trace(const std::string& path, comm::Communicator&, int worker, const comm::Trace&, double origin);

}  // namespace skein::apps
