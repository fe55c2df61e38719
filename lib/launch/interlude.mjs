#!/usr/bin/env node
/** `interlude <command>`: the command line. */

import { callerCwd, npmCommand } from '../runner/host/own-program.mjs';
import { errorCode } from '../runner/host/system-error.mjs';
import { ignoreOutputErrors } from './shutdown.mjs';
import { loadTypescript } from './typescript.mjs';

ignoreOutputErrors();
// resolve paths from the caller's folder
process.chdir(callerCwd);

let cli;
try {
  cli = await loadTypescript('lib/runner/cli/main.ts');
} catch (error) {
  if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test(errorCode(error) ?? '')) throw error;
  process.stderr.write(`interlude: packages are not installed; run: ${npmCommand(['ci'])}\n`);
  process.exit(3);
}
/** Commands outside lib/runner/cli. @type {Record<string, string>} */
const OTHER_ROOMS = { db: 'lib/server/maintenance/db.ts', conformance: 'lib/conformance/command.ts' };
process.exit(
  await cli.main(process.argv.slice(2), (/** @type {string} */ name) =>
    loadTypescript(OTHER_ROOMS[name] ?? `lib/runner/cli/${name}.ts`),
  ),
);
