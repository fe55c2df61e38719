#!/usr/bin/env node
/** `interlude-runner` in a clone. The package has a bundle of bin.ts in its place. */
import { loadTypescript } from '../../launch/typescript.mjs';

const { runnerMain } = await loadTypescript('lib/runner/cli/main.ts');
const load = (/** @type {string} */ name) => loadTypescript(`lib/runner/cli/${name}.ts`);
process.exit(await runnerMain(process.argv.slice(2), load));
