// Think with a compaction function of its own, so that /rig-compact summarises without a model.
import { createCompactFunction } from "agents/experimental/memory/utils";
import worker, { RigThink as Plain } from "./think";

export class RigThink extends Plain {
  summaries = 0;

  configureSession(session: any) {
    return session.onCompaction(
      createCompactFunction({
        protectHead: 1,
        minTailMessages: 2,
        tailTokenBudget: 1,
        summarize: async () => `SUMMARY-${++this.summaries}`,
      }),
    );
  }
}

export default worker;
