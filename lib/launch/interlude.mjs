#!/usr/bin/env node
/** `interlude <command>`: the runner's command line. */

import { npmCommand, readFrom } from '../runner/shown-command.mjs';
import { errorCode } from '../runner/system-error.mjs';
import { loadTypescript } from './typescript.mjs';
import { outliveListeners } from './unheard-output.mjs';

outliveListeners();
// Paths are meant from where the person stands who gives them.
process.chdir(readFrom);

let cli;
try {
  cli = await loadTypescript('lib/runner/cli/main.ts');
} catch (error) {
  if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test(errorCode(error) ?? '')) throw error;
  process.stderr.write(`interlude: its packages are not installed; run: ${npmCommand(['ci'])}\n`);
  process.exit(3);
}
/** What looks after the database is no runner's. */
const folderOf = (/** @type {string} */ name) => (name === 'db' ? 'lib/maintenance' : 'lib/runner/cli');
process.exit(
  await cli.main(process.argv.slice(2), (/** @type {string} */ name) => loadTypescript(`${folderOf(name)}/${name}.ts`)),
);
