#!/usr/bin/env node
/** `interlude <command>`: the runner's command line. */

import { callerCwd, npmCommand } from '../runner/host/own-program.mjs';
import { errorCode } from '../runner/host/system-error.mjs';
import { loadTypescript } from './typescript.mjs';
import { outliveListeners } from './unheard-output.mjs';

outliveListeners();
// Paths are meant from where the person stands who gives them.
process.chdir(callerCwd);

let cli;
try {
  cli = await loadTypescript('lib/runner/cli/main.ts');
} catch (error) {
  if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test(errorCode(error) ?? '')) throw error;
  process.stderr.write(`interlude: its packages are not installed; run: ${npmCommand(['ci'])}\n`);
  process.exit(3);
}
/** Commands that no runner needs; all others are files of lib/runner/cli. @type {Record<string, string>} */
const ELSEWHERE = { db: 'lib/server/maintenance/db.ts', conformance: 'lib/conformance/command.ts' };
process.exit(
  await cli.main(process.argv.slice(2), (/** @type {string} */ name) =>
    loadTypescript(ELSEWHERE[name] ?? `lib/runner/cli/${name}.ts`),
  ),
);
