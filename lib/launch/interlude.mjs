#!/usr/bin/env node
/** `interlude <command>`: the runner's command line. It is TypeScript; tsx reads it, so nothing has to be built. */

import { fileURLToPath } from 'node:url';

try {
  const { register } = await import('tsx/esm/api');
  // the package's own, wherever the command is called from
  register({ tsconfig: fileURLToPath(new URL('../../tsconfig.json', import.meta.url)) });
} catch (error) {
  if (error?.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  process.stderr.write('interlude: its packages are not installed; run "npm ci" in its folder first\n');
  process.exit(3);
}
const { main } = await import('../runner/cli/main.ts');
process.exit(await main(process.argv.slice(2)));
