import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fieldsOf, numberOf, parseJson, textOf } from '@interlude/protocol/fields';
import { type ControlFile, controlFolder, readControlFile } from '../host/control-file';
import { type CallMade, type CallTool, refused, type ToolAnswer, type ToolName } from './agent-tools';

/**
 * Passes tool calls on to the runner that follows the calling agent. Each runner of this machine judges by the evidence
 * whether the call is its agent's; the one whose agent is nearest above this process has it.
 *
 * Failure: a call that no runner or more than one claims is refused in a sentence, for the agent to read. Each call
 * looks for the runners anew.
 */
export type Door = Pick<ControlFile, 'url' | 'secret'>;

const WITHIN_MS = 5_000;
const NO_RUNNER = 'The Interlude runner is not running, so this was not delivered. Go on without it.';
const NO_ANSWER = 'The Interlude runner does not answer, so this may not have been delivered. Go on without it.';
const SEVERAL_RUNNERS =
  'Interlude refused: more than one runner follows this agent, so its session is not certain. Go on without it.';

interface Asked {
  tool: ToolName;
  input: unknown;
  made: CallMade;
  /** The processes above this one, the nearest first. */
  pids: readonly number[];
}

interface Claim {
  door: Door;
  /** How near the agent's process is; infinity where it is not among the caller's. */
  at: number;
  /** Why the call is not its agent's; null if it is. */
  refusal: string | null;
}

/** @param doors of the runners that may follow the agent */
export function forwardingTo(doors: () => Promise<Door[]>, pids: readonly number[]): CallTool {
  return async (tool, input, made) => {
    const asked = { tool, input, made, pids };
    const [first, ...others] = await doors();
    if (first === undefined) return refused(NO_RUNNER);
    if (others.length === 0) return await call(first, asked);
    const claims = await Promise.all([first, ...others].map((door) => claim(door, asked)));
    const nearest = Math.min(...claims.map(({ at }) => at));
    const near = claims.filter(({ at }) => at === nearest);
    const [mine, another] = near.filter(({ refusal }) => refusal === null);
    if (another !== undefined) return refused(SEVERAL_RUNNERS);
    if (mine !== undefined) return await call(mine.door, asked);
    return refused(`Interlude refused: ${near[0]?.refusal}`);
  };
}

/** @returns the doors of all runners with this data folder whose process is there */
export async function doorsIn(dataDir: string): Promise<Door[]> {
  const folder = controlFolder(dataDir);
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => name.endsWith('.control')).map((name) => readControlFile(join(folder, name)));
  return (await Promise.all(files)).filter((file) => file !== null).filter(({ pid }) => isAlive(pid));
}

export async function doorAt(controlFile: string): Promise<Door[]> {
  const file = await readControlFile(controlFile);
  return file === null ? [] : [file];
}

async function call(door: Door, asked: Asked): Promise<ToolAnswer> {
  const answer = await ask(door, asked, {});
  if (answer === null) return refused(NO_ANSWER);
  const { text, isError, error } = answer.fields;
  if (answer.isOk && typeof text === 'string') return { text, isError: isError === true };
  return refused(`Interlude refused: ${textOf(error) ?? `status ${answer.status}`}`);
}

async function claim(door: Door, asked: Asked): Promise<Claim> {
  const answer = await ask(door, asked, { claim: '1' });
  if (answer === null) return { door, at: Number.POSITIVE_INFINITY, refusal: 'its runner does not answer' };
  const { at, error } = answer.fields;
  const refusal = answer.isOk ? null : (textOf(error) ?? `status ${answer.status}`);
  return { door, at: numberOf(at) ?? Number.POSITIVE_INFINITY, refusal };
}

async function ask({ url, secret }: Door, { tool, input, made, pids }: Asked, more: Record<string, string>) {
  const { client, ids } = made;
  const query = new URLSearchParams({ pid: pids.join(','), ids: ids.join(','), ...more });
  if (client !== null) query.set('client', client);
  try {
    const response = await fetch(`${url}/tools/${tool}?${query}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(input ?? {}),
      signal: AbortSignal.timeout(WITHIN_MS),
    });
    const { ok: isOk, status } = response;
    return { isOk, status, fields: fieldsOf(parseJson(await response.text())) };
  } catch {
    return null;
  }
}

/** A file that was left behind names a port that anybody may have by now. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Between an agent and what it starts stand a shell and npm, if anything. */
const MOST_ANCESTORS = 8;

const run = promisify(execFile);

/** The processes above this one, the nearest first: an agent that started it is among them. */
export async function ancestors(): Promise<number[]> {
  const chain: number[] = [];
  for (let pid: number | null = process.ppid; pid !== null && pid > 1 && chain.length < MOST_ANCESTORS; ) {
    chain.push(pid);
    pid = await parentOf(pid);
  }
  return chain;
}

/** @returns null where the system does not tell */
async function parentOf(pid: number): Promise<number | null> {
  try {
    if (process.platform === 'linux') {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
      // the name in parentheses may hold anything, also parentheses
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    }
    if (process.platform === 'win32') return null;
    const { stdout } = await run('ps', ['-o', 'ppid=', '-p', `${pid}`]);
    return Number(stdout) || null;
  } catch {
    return null;
  }
}
