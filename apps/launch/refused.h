// What all processes of a job together have refused of what came over the network.
#pragma once
#include "apps/base/json.h"
#include "apps/launch/job.h"
#include "comm/refusals.h"

namespace skein::apps {

// By these workers. Collective.
comm::Refused refused_by_all(const comm::Refusals* mine, comm::Communicator& workers);
// By the server of these workers, which answers by answer_refused(). To be called by one worker. Throws
// PeerLost if the server is lost.
comm::Refused refused_by_server(comm::Communicator& hub);
// On the server: answers the worker that has asked, if any. To be called again and again.
void answer_refused(const Member& server);

// "refused_callers" and so on, and back; what is missing is 0.
Json to_json(const comm::Refused&);
comm::Refused refused_in(const Json& object);

}  // namespace skein::apps
