import { ACCESS } from './access.mjs';
import { COMMANDS } from './commands.mjs';
import { DOOR } from './door.mjs';
import { INGEST } from './ingest.mjs';
import { LIVE } from './live.mjs';
import { PAGE } from './page.mjs';
import { REDACTION } from './redaction.mjs';
import { RUNNER } from './runner.mjs';
import { SIGN_IN } from './sign-in.mjs';
import { STATE } from './state.mjs';
import { STORAGE } from './storage.mjs';

/** @type {readonly import('./mutant.mjs').Mutant[]} */
export const MUTANTS = [
  ...INGEST,
  ...LIVE,
  ...STATE,
  ...COMMANDS,
  ...ACCESS,
  ...SIGN_IN,
  ...DOOR,
  ...REDACTION,
  ...STORAGE,
  ...RUNNER,
  ...PAGE,
];
