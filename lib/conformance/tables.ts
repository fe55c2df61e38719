import type { Check } from './check';
import * as runnerCommands from './runner/command-checks';
import * as delivery from './runner/delivery-checks';
import type { RunnerTarget } from './runner/runner-target';
import * as runnerSessions from './runner/session-checks';
import * as access from './server/access-checks';
import * as serverCommands from './server/command-checks';
import * as ingest from './server/ingest-checks';
import type { ServerTarget } from './server/server-target';
import * as serverSessions from './server/session-checks';

/** Every check of `interlude conformance server`, in the order of the run. */
export const SERVER_CHECKS: readonly Check<ServerTarget>[] = [
  ...ingest.OUTBOX,
  ...ingest.ANSWERS,
  ...ingest.LIMITS,
  ...serverSessions.TURNS,
  ...serverSessions.TASKS,
  ...serverSessions.REQUESTS,
  ...serverCommands.COMMANDS,
  ...serverCommands.LIVENESS,
  ...serverCommands.LOG_LEVEL,
  ...access.SECRETS,
  ...access.NEVER_IN_THE_WAY,
  ...serverSessions.ORDER,
];

/** Every check of `interlude conformance runner`, in the order of the run: the last ones judge the whole run. */
export const RUNNER_CHECKS: readonly Check<RunnerTarget>[] = [
  ...runnerSessions.TURNS,
  ...runnerSessions.TASKS,
  ...runnerSessions.REQUESTS,
  ...runnerCommands.COMMANDS,
  ...runnerCommands.LOG_LEVEL,
  ...delivery.SECRETS,
  ...runnerSessions.ORDER,
  ...delivery.LIMITS,
  ...delivery.NEVER_IN_THE_WAY,
  ...runnerCommands.LIVENESS,
  ...delivery.ANSWERS,
  ...delivery.OUTBOX,
];
