#!/usr/bin/env node
/** `interlude <command>`: the runner's command line. */

import { loadTypescript } from './typescript.mjs';

let cli;
try {
  cli = await loadTypescript('lib/runner/cli/main.ts');
} catch (error) {
  if (!/^(?:ERR_)?MODULE_NOT_FOUND$/.test(error?.code)) throw error;
  process.stderr.write('interlude: its packages are not installed; run "npm ci" in its folder first\n');
  process.exit(3);
}
process.exit(await cli.main(process.argv.slice(2)));
