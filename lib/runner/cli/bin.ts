#!/usr/bin/env node
/** `interlude-runner`: `interlude-runner claude` is `interlude runner claude`. */
import { KINDS } from '../sources/kinds';
import { main, RUNNER_COMMANDS } from './main';

/** Spelled out, because a bundler has to find the files. */
const LOAD = {
  runner: () => import('./runner'),
  hooks: () => import('./hooks'),
  replay: () => import('./replay'),
  mcp: () => import('./mcp'),
  wait: () => import('./wait'),
  outbox: () => import('./outbox'),
};

/** `hooks` is a kind of agent, and with an action the command that changes Claude Code's settings. */
function dashboardArguments([name = '', ...rest]: string[]): string[] {
  const isAction = name === 'hooks' && rest[0] !== undefined && !rest[0].startsWith('-');
  return Object.hasOwn(KINDS, name) && !isAction ? ['runner', name, ...rest] : [name, ...rest];
}

const args = process.argv.slice(2);
process.exit(
  await main(args.length === 0 ? [] : dashboardArguments(args), RUNNER_COMMANDS, (name) =>
    LOAD[name as keyof typeof LOAD](),
  ),
);
