#!/usr/bin/env node
/** `interlude <command>`: the command line. */

import { callerCwd, npmCommand } from '../runner/host/own-program.mjs';
import { errorCode } from '../runner/host/system-error.mjs';
import { ignoreOutputErrors } from './shutdown.mjs';
import { loadTypescript } from './typescript.mjs';

/** Commands outside lib/runner/cli. @type {Record<string, string>} */
const OTHER_ROOMS = { db: 'lib/server/maintenance/db.ts', conformance: 'lib/conformance/command.ts' };

ignoreOutputErrors();
if (process.argv[2] === 'help' && process.argv[3] === 'start') process.argv.splice(2, 2, 'start', '--help');
const [name = 'start'] = process.argv.slice(2);
if (name === 'start') {
  process.argv.splice(2, 1);
  await import('./start.mjs');
} else process.exit(await run());

async function run() {
  // resolve paths from the caller's folder
  process.chdir(callerCwd);
  let cli;
  try {
    cli = await loadTypescript('lib/runner/cli/main.ts');
  } catch (error) {
    if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test(errorCode(error) ?? '')) throw error;
    const [start, install] = [npmCommand(['start']), npmCommand(['ci'])];
    process.stderr.write(`interlude: packages are not installed; run: ${start} (or ${install} to install only)\n`);
    return 3;
  }
  return cli.main(process.argv.slice(2), (/** @type {string} */ command) =>
    loadTypescript(OTHER_ROOMS[command] ?? `lib/runner/cli/${command}.ts`),
  );
}
