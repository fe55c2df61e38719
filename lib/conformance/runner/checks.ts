import type { Check } from '../check';
import { ANSWERS } from './answers';
import { COMMANDS } from './commands';
import { LIMITS } from './limits';
import { LIVENESS } from './liveness';
import { LOG_LEVEL } from './log-level';
import { NEVER_IN_THE_WAY } from './never-in-the-way';
import { ORDER } from './order';
import { OUTBOX } from './outbox';
import { REQUESTS } from './requests';
import type { RunnerStage } from './runner-stage';
import { SECRETS } from './secrets';
import { TASKS } from './tasks';
import { TURNS } from './turns';

/** Everything that `interlude conformance runner` checks, in its order: the last ones judge the whole run. */
export const RUNNER_CHECKS: readonly Check<RunnerStage>[] = [
  ...TURNS,
  ...TASKS,
  ...REQUESTS,
  ...COMMANDS,
  ...LOG_LEVEL,
  ...SECRETS,
  ...ORDER,
  ...LIMITS,
  ...NEVER_IN_THE_WAY,
  ...LIVENESS,
  ...ANSWERS,
  ...OUTBOX,
];
