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
import { SECRETS } from './secrets';
import type { ServerStage } from './server-stage';
import { TASKS } from './tasks';
import { TURNS } from './turns';

/** Everything that `interlude conformance server` checks, in its order. */
export const SERVER_CHECKS: readonly Check<ServerStage>[] = [
  ...OUTBOX,
  ...ANSWERS,
  ...LIMITS,
  ...TURNS,
  ...TASKS,
  ...REQUESTS,
  ...COMMANDS,
  ...LIVENESS,
  ...LOG_LEVEL,
  ...SECRETS,
  ...NEVER_IN_THE_WAY,
  ...ORDER,
];
