import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fieldsOf, numberOf, parseJson, textOf } from '@interlude/protocol/fields';
import { type ControlFile, controlFolder, readControlFile } from '../host/control-file';
import { isRunning } from '../host/data-folder.mjs';
import { type CallOrigin, type CallTool, refused, type ToolName, type ToolResult } from './agent-tools';

export type RunnerPort = Pick<ControlFile, 'url' | 'secret'>;

const CALL_TIMEOUT_MS = 5_000;
const NO_RUNNER = 'The Interlude runner is not running, so this was not delivered. Continue without it.';
const NO_ANSWER = 'The Interlude runner does not answer, so this may not have been delivered. Continue without it.';
const SEVERAL_RUNNERS =
  'Interlude refused: more than one runner follows this agent, so its session is not certain. Continue without it.';

interface Call {
  tool: ToolName;
  input: unknown;
  origin: CallOrigin;
  /** Parent processes, the nearest first. */
  pids: readonly number[];
}

interface Claim {
  port: RunnerPort;
  /** The index of the agent's process in `pids`; infinity if it is not among them. */
  at: number;
  /** Null if the call comes from the runner's agent. */
  refusal: string | null;
}

/**
 * Forwards tool calls to the runner that follows the calling agent. Each runner on this machine decides by the evidence
 * whether the call comes from its agent. The runner whose agent is the nearest parent process gets the call.
 *
 * Failure: a call claimed by no runner or by several is refused, with a sentence for the agent. Runners are looked up
 * for each call.
 *
 * @param findPorts finds the runners that may follow the agent
 */
export function forwardCalls(findPorts: () => Promise<RunnerPort[]>, pids: readonly number[]): CallTool {
  return async (tool, input, origin) => {
    const call: Call = { tool, input, origin, pids };
    const [first, ...others] = await findPorts();
    if (first === undefined) return refused(NO_RUNNER);
    if (others.length === 0) return await send(first, call);
    const claims = await Promise.all([first, ...others].map((port) => claim(port, call)));
    const distance = Math.min(...claims.map(({ at }) => at));
    const nearest = claims.filter(({ at }) => at === distance);
    const [owner, another] = nearest.filter(({ refusal }) => refusal === null);
    if (another !== undefined) return refused(SEVERAL_RUNNERS);
    if (owner !== undefined) return await send(owner.port, call);
    return refused(`Interlude refused: ${nearest[0]?.refusal}`);
  };
}

/** @returns the ports of all running runners with this data folder */
export async function runnerPortsIn(dataDir: string): Promise<RunnerPort[]> {
  const folder = controlFolder(dataDir);
  const names = await readdir(folder).catch(() => []);
  const files = names.filter((name) => name.endsWith('.control')).map((name) => readControlFile(join(folder, name)));
  // The port in the file of a killed runner may belong to another program by now.
  return (await Promise.all(files)).filter((file) => file !== null).filter(({ pid }) => isRunning(pid));
}

export async function runnerPortAt(controlFile: string): Promise<RunnerPort[]> {
  const file = await readControlFile(controlFile);
  return file === null ? [] : [file];
}

async function send(port: RunnerPort, call: Call): Promise<ToolResult> {
  const answer = await post(port, call);
  if (answer === null) return refused(NO_ANSWER);
  const { text, isError, error } = answer.fields;
  if (answer.isOk && typeof text === 'string') return { text, isError: isError === true };
  return refused(`Interlude refused: ${textOf(error) ?? `status ${answer.status}`}`);
}

async function claim(port: RunnerPort, call: Call): Promise<Claim> {
  const answer = await post(port, call, { claim: '1' });
  if (answer === null) return { port, at: Number.POSITIVE_INFINITY, refusal: 'its runner does not answer' };
  const { at, error } = answer.fields;
  const refusal = answer.isOk ? null : (textOf(error) ?? `status ${answer.status}`);
  return { port, at: numberOf(at) ?? Number.POSITIVE_INFINITY, refusal };
}

async function post(
  { url, secret }: RunnerPort,
  { tool, input, origin, pids }: Call,
  more: Record<string, string> = {},
) {
  const { client, ids } = origin;
  const query = new URLSearchParams({ pid: pids.join(','), ids: ids.join(','), ...more });
  if (client !== null) query.set('client', client);
  try {
    const response = await fetch(`${url}/tools/${tool}?${query}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(input ?? {}),
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
    });
    const { ok: isOk, status } = response;
    return { isOk, status, fields: fieldsOf(parseJson(await response.text())) };
  } catch {
    return null;
  }
}

/** Usually only a shell and npm are between an agent and this process. */
const MAX_ANCESTORS = 8;

const run = promisify(execFile);

/** The parent processes, the nearest first. */
export async function ancestors(): Promise<number[]> {
  const chain: number[] = [];
  for (let pid: number | null = process.ppid; pid !== null && pid > 1 && chain.length < MAX_ANCESTORS; ) {
    chain.push(pid);
    pid = await parentOf(pid);
  }
  return chain;
}

/** @returns null if unknown */
async function parentOf(pid: number): Promise<number | null> {
  try {
    if (process.platform === 'linux') {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
      // The name in parentheses may contain parentheses.
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
    }
    if (process.platform === 'win32') return null;
    const { stdout } = await run('ps', ['-o', 'ppid=', '-p', `${pid}`]);
    return Number(stdout) || null;
  } catch {
    return null;
  }
}
