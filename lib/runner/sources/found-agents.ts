import { access, constants, stat } from 'node:fs/promises';
import { delimiter, isAbsolute, join } from 'node:path';
import type { FoundAgent } from '@interlude/protocol/found-agent';
import { signs as acp } from './acp/signs';
import { signs as agentapi } from './agentapi/signs';
import { signs as claude } from './claude/signs';
import { signs as codex } from './codex/signs';
import { signs as hooks } from './hooks/signs';
import { signs as opencode } from './opencode/signs';

type Environment = Record<string, string | undefined>;

/** The agents of this machine that could be connected, in the order of their kinds. Of what is found twice, the first. */
export async function findAgents(env: Environment): Promise<FoundAgent[]> {
  const found: FoundAgent[] = [];
  for (const [kind, signs] of Object.entries(DETECTION_RULES)) {
    for (const sign of signs) {
      const at = await locate(sign, env);
      const { title, commands, why } = sign;
      if (at === null || found.some((one) => one.commands.join() === commands.join())) continue;
      found.push({ kind, title, at, commands: [...commands], why });
    }
  }
  return found;
}

async function locate({ programs = [], files = [] }: DetectionRule, env: Environment): Promise<string | null> {
  for (const program of programs) {
    const path = await findProgram(program, env);
    if (path !== null) return path;
  }
  for (const file of files) {
    const path = expandPath(file, env);
    if (path !== null && (await isAccessible(path, constants.F_OK))) return path;
  }
  return null;
}

async function findProgram(program: string, { PATH = '' }: Environment): Promise<string | null> {
  for (const folder of PATH.split(delimiter)) {
    // A relative entry would mean another program in each folder.
    if (!isAbsolute(folder)) continue;
    const path = join(folder, program);
    if ((await isAccessible(path, constants.X_OK)) && (await stat(path)).isFile()) return path;
  }
  return null;
}

async function isAccessible(path: string, mode: number): Promise<boolean> {
  return await access(path, mode).then(
    () => true,
    () => false,
  );
}

/** @returns null where a variable that it needs is not set */
function expandPath(path: string, env: Environment): string | null {
  const [, name, rest = ''] = /^(?:\$(\w+)|~)(.*)$/.exec(path) ?? [undefined, undefined, path];
  const base = path.startsWith('~') ? env.HOME : name === undefined ? '' : env[name];
  return base === undefined || (base === '' && name !== undefined) ? null : `${base}${rest}`;
}

/** By which an agent is known to be on this machine. */
export interface DetectionRule {
  /** What people call it: `Gemini CLI`. */
  title: string;
  /** One of these programs is on the PATH, … */
  programs?: readonly string[];
  /** … or one of these files is there: a socket, settings. `~` is the home folder, `$NAME` a variable. */
  files?: readonly string[];
  /** What connects it, behind `interlude`; several run one after the other. */
  commands: readonly string[];
  /** What connecting it does, in a sentence. */
  why: string;
}

/** The signs of each kind, beside its source: light enough for the start of the dashboard. Agents behind an address have none. */
export const DETECTION_RULES: Readonly<Record<string, readonly DetectionRule[]>> = {
  claude,
  hooks,
  codex,
  opencode,
  acp,
  agentapi,
};
