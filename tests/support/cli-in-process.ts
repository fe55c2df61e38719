import { main, stripOwnEnvironment } from '@interlude/runner/cli/main';
import { vi } from 'vitest';
import type { CliEnd } from './cli';

/**
 * Runs the command line in this process, one call at a time. A process of its own costs most of a second of CPU. Use
 * `cli.ts` to test exit codes and signals.
 */
export async function callCli(args: string[], env: Record<string, string> = {}): Promise<CliEnd> {
  const out = { stdout: '', stderr: '' };
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
      out[name] += chunk;
      return true;
    }),
  );
  stripOwnEnvironment(process.env);
  const before = { ...process.env };
  Object.assign(process.env, env);
  try {
    const exitCode = await main(args, (name) => {
      if (name === 'db') return import('../../lib/server/maintenance/db');
      if (name === 'conformance') return import('../../lib/conformance/command');
      return import(`../../lib/runner/cli/${name}.ts`);
    });
    return { exitCode, ...out };
  } finally {
    for (const name of Object.keys(env)) delete process.env[name];
    Object.assign(process.env, before);
    for (const spy of spies) spy.mockRestore();
  }
}
