import { access, constants, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import type { FoundAgent } from '@interlude/protocol/agent-status';
import { type AgentSign, KIND_SIGNS } from './kind-signs';

type Environment = Record<string, string | undefined>;

/** The agents of this machine that could be connected, in the order of their kinds. Of what is found twice, the first. */
export async function findAgents(env: Environment): Promise<FoundAgent[]> {
  const found: FoundAgent[] = [];
  for (const [kind, signs] of Object.entries(KIND_SIGNS)) {
    for (const sign of signs) {
      const at = await whereIs(sign, env);
      const { title, commands, why } = sign;
      if (at === null || found.some((one) => one.commands.join() === commands.join())) continue;
      found.push({ kind, title, at, commands: [...commands], why });
    }
  }
  return found;
}

async function whereIs({ programs = [], files = [] }: AgentSign, env: Environment): Promise<string | null> {
  for (const program of programs) {
    const path = await programAt(program, env);
    if (path !== null) return path;
  }
  for (const file of files) {
    const path = expanded(file, env);
    if (path !== null && (await isThere(path, constants.F_OK))) return path;
  }
  return null;
}

async function programAt(program: string, { PATH = '' }: Environment): Promise<string | null> {
  for (const folder of PATH.split(delimiter)) {
    // A relative entry would mean another program in each folder.
    if (!isAbsolute(folder)) continue;
    const path = join(folder, program);
    if ((await isThere(path, constants.X_OK)) && (await stat(path)).isFile()) return path;
  }
  return null;
}

async function isThere(path: string, mode: number): Promise<boolean> {
  return await access(path, mode).then(
    () => true,
    () => false,
  );
}

/** @returns null where a variable that it needs is not set */
function expanded(path: string, env: Environment): string | null {
  const [, name, rest = ''] = /^(?:\$(\w+)|~)(.*)$/.exec(path) ?? [undefined, undefined, path];
  const base = path.startsWith('~') ? env.HOME : name === undefined ? '' : env[name];
  return base === undefined || (base === '' && name !== undefined) ? null : `${base}${rest}`;
}
