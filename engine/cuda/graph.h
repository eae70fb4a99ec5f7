// Capturing a stream's work and launching it again, without CUDA's headers. Defined in graph.cu.
#pragma once
#include <cstdint>
#include <memory>

namespace skein::cuda {

// From now on what the calling thread queues on the stream, and on streams that wait for its events, is captured
// and not run; other threads go on as usual.
void begin_capture(void* stream);

struct Graph {
  std::shared_ptr<void> executable;  // null: nothing was captured
  int64_t nodes = 0;
};
// Ends the capture and makes a graph of it. Throws Error if something could not be captured.
Graph end_capture(void* stream);
// Ends a capture that came to nothing; true if it was still sound.
bool abandon_capture(void* stream) noexcept;

void launch(const Graph&, void* stream);
// Launches it and waits for its end. Seconds from its first node to its last by the device's clock.
double seconds_of(const Graph&, void* stream);

}  // namespace skein::cuda
