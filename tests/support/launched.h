// Workers of gossip_avg that a test starts by the shell, each script in a place of its own.
#pragma once
#include "tests/support/program.h"

namespace skein {

using testing_programs::Ended;

// Endless averaging to interrupt. The name of the output identifies our processes.
class Launched : public ::testing::Test {
 protected:
  Ended run(const std::string& script) {
    return place_.run("MARK=" + place_.path().filename().string() +
                      "; LONG=\"$GOSSIP --workers 3 --size 1000 --rounds 100000000 --deadline 20 --output "
                      "$MARK{rank}.npy\"\n"
                      "ours() { pgrep -f -- \"--output $MARK\" | grep -v $$; }\n"
                      "workers() { pgrep -P $1 -f -- \"--output $MARK\"; }\n"
                      // All three catch SIGINT, so they have met: the second bit of the mask.
                      "ready() { for i in $(seq 600); do [ \"$(for w in $(workers $P); do cat "
                      "/proc/$w/status; done 2>/dev/null | grep -c 'SigCgt:.*[2367abef]$')\" = 3 ] && sleep "
                      "0.2 && return; sleep 0.1; done; echo not ready; }\n"
                      "gone() { for i in $(seq 600); do [ -z \"$(pgrep -f \"^$GOSSIP.*--output $MARK\")\" ] "
                      "&& echo gone && return; "
                      "sleep 0.1; done; echo left; pgrep -fa -- \"--output $MARK\"; }\n" +
                      script);
  }
  testing_programs::Workplace place_;
};

// A fake torchrun agent: a store that listens at MASTER_PORT and does not answer our workers.
inline constexpr const char* kAgent =
    "head -c 32 /dev/urandom > key; chmod 600 key\n"
    "python3 -c 'import socket,time; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); "
    "print(s.getsockname()[1],flush=True); time.sleep(300)' > port & AGENT=$!\n"
    "until [ -s port ]; do sleep 0.05; done\n"
    "export SKEIN_KEY_FILE=$PWD/key WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$(cat port) "
    "TORCHELASTIC_RUN_ID=none TORCHELASTIC_RESTART_COUNT=0 TORCHELASTIC_USE_AGENT_STORE=True\n";

}  // namespace skein
