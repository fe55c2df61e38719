import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

const program = fileURLToPath(new URL('../../lib/launch/start.mjs', import.meta.url));
const TOKEN = 'a-token-for-tests-0123456789';

/** Runs `npm start` where it must refuse to start. @returns the one line that it prints */
export async function refusedStart(env: Record<string, string>): Promise<string> {
  const kept = Object.entries(process.env).filter(([name]) => !/^(INTERLUDE_|HOST$|PORT$|npm_)/.test(name));
  const child = spawn(process.execPath, [program, '--port', '0'], {
    env: { ...(Object.fromEntries(kept) as NodeJS.ProcessEnv), INTERLUDE_TOKEN: TOKEN, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const exitCode = await new Promise((resolve) => child.once('close', resolve));
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(/^interlude: [^\n]+\n$/) });
  return stderr;
}
