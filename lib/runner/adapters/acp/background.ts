/**
 * What agents say in the result of a tool call when what they started goes on in the background. There is no message for
 * that in ACP v1: these words, at the beginning of the result, are all there is.
 *
 * @see qwen-code 0.24.4, gemini-cli 0.61.0, kimi-code 2.1.0, copilot 1.0.102
 */
export interface BackgroundStart {
  /** The agent's name for it; null where it gives none. */
  taskId: string | null;
  /** Its process, where the agent names that. */
  pid: number | null;
  taskType: 'local_bash' | 'local_agent';
}

const STARTS: readonly { says: RegExp; taskType: BackgroundStart['taskType'] }[] = [
  { says: /^Background shell started\.\s+id: (?<id>\S+)/, taskType: 'local_bash' },
  { says: /^[^\n]{0,200}\bbackground with shellId: (?<id>\S+?)[.>\s]/, taskType: 'local_bash' },
  { says: /^Command moved to background \(PID: (?<pid>\d{1,10})\)/, taskType: 'local_bash' },
  {
    says: /^task_id: (?<id>\S+)\n(?:pid: (?<pid>\d{1,10})\n)?(?:[^\n]*\n){0,3}status: running\n/,
    taskType: 'local_bash',
  },
  { says: /^Agent started in background with agent_id: (?<id>[\w-]+)/, taskType: 'local_agent' },
];

export function backgroundStart(text: string): BackgroundStart | null {
  for (const { says, taskType } of STARTS) {
    const found = says.exec(text.slice(0, 4_000));
    if (found === null) continue;
    const { id = null, pid } = found.groups ?? {};
    return { taskId: id, pid: pid === undefined ? null : Number(pid), taskType };
  }
  return null;
}

/**
 * The file that a background command writes to, as qwen and Claude Code name it in the words that begin its result.
 *
 * @param text the result of a call that was made to run a command in the background: of any other, these words may be
 *   anybody's, and the file that they name anybody's as well
 * @param taskId which the words have to be about
 */
export function outputFileIn(text: string, taskId: string): string | null {
  for (const says of OUTPUTS) {
    const [, id, file = null] = says.exec(text.slice(0, 8_000)) ?? [];
    if (id === taskId) return file;
  }
  return null;
}

const OUTPUTS = [
  /^Background shell started\.\nid: (\S+)\n(?:pid: \d+\n)?output file: ([^\n]+)\n/,
  /^Command running in background with ID: (\S+)\. Output is being written to: ([^\n]+?\.output)\. /,
];

/** Where a later result says that something of the background has ended, as Copilot does when it reads of it. */
export interface BackgroundEnd {
  taskId: string;
  status: 'completed' | 'failed';
  exitCode: number | null;
}

export function backgroundEnd(text: string): BackgroundEnd | null {
  const start = text.slice(0, 1_000);
  const agent = /^Agent (?:is idle|has completed|completed|failed)[^\n]*?agent_id: ([\w-]+)[^\n]*?status: (\w+)/.exec(
    start,
  );
  if (agent?.[1] !== undefined && agent[2] !== 'running') {
    return { taskId: agent[1], status: agent[2] === 'failed' ? 'failed' : 'completed', exitCode: null };
  }
  const shell = /<shellId: (\S+) completed with exit code (\d+)>\s*$/.exec(text.slice(-200));
  if (shell?.[1] === undefined) return null;
  const exitCode = Number(shell[2]);
  return { taskId: shell[1], status: exitCode === 0 ? 'completed' : 'failed', exitCode };
}
