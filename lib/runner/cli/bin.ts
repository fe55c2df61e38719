#!/usr/bin/env node
/** `interlude-runner` as bundled into the package. */
import { runnerMain } from './main';

/** Literal imports, because the bundler has to find the files. */
const LOAD = {
  runner: () => import('./runner'),
  hooks: () => import('./hooks'),
  replay: () => import('./replay'),
  mcp: () => import('./mcp'),
  wait: () => import('./wait'),
  outbox: () => import('./outbox'),
};

process.exit(await runnerMain(process.argv.slice(2), (name) => LOAD[name as keyof typeof LOAD]()));
