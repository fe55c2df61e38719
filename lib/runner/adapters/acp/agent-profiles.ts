import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';

/** The capability by which claude-agent-acp announces tasks, and the turns that it begins by itself. */
export const ASYNC_TASKS = 'asyncTasks';

/**
 * What is known of single agents beyond the protocol: what they mark, and what they can't tell. Measured with the versions
 * that are named; an agent that is not here gets what holds of plain ACP.
 */
export interface AgentProfile {
  /**
   * It marks where a turn that it began by itself ends, so a prompt that is sent meanwhile waits for that, and what it
   * says before that mark is not the answer. `both`: it marks the beginning too, so a text between prompts without that
   * mark comes from its program, as a remark, and begins no turn.
   */
  marksTurns?: 'ends' | 'both';
  /** It answers a prompt when it accepts it, and ends the turn with `state_update`: ACP v2. */
  reportsState?: true;
  /** A prompt may be answered at once because its turn goes on with the next one: only a result ends a turn. */
  handsOver?: true;
  /** A prompt stays open until all background work that it began has ended. */
  waitsForBackground?: true;
  /** A command that is still open when its turn ends goes on in the background. */
  leavesCommandsOpen?: true;
  /** A single task can be ended. */
  stopsTasks?: true;
  /** It never tells how a background command ended, which is said on each of its tasks. Its process does, if it is named. */
  taskNote?: string;
  /** What it never tells, as an operator reads it. */
  limits: readonly string[];
}

const NO_ENDS = 'does not tell when a background command ends: its task stays open until the agent ends.';
const NO_EXIT_CODES =
  'does not tell how a background command ends: its task ends with its process, without an exit code.';
const TASK_NOTE = 'Started. The agent does not tell when it ends.';

const PROFILES: Readonly<Record<string, AgentProfile>> = {
  '@agentclientprotocol/claude-agent-acp': { marksTurns: 'ends', handsOver: true, stopsTasks: true, limits: [] },
  'qwen-code': {
    marksTurns: 'both',
    limits: ['Qwen Code does not tell what its subagents do.'],
  },
  'gemini-cli': {
    taskNote: TASK_NOTE,
    limits: [`Gemini CLI ${NO_EXIT_CODES}`, 'Gemini CLI does not wake when background work ends.'],
  },
  'codex-acp': {
    leavesCommandsOpen: true,
    taskNote: TASK_NOTE,
    limits: [
      `Codex over ACP ${NO_ENDS}`,
      'Codex over ACP does not wake when background work ends; “runner codex” tells more.',
    ],
  },
  '@agentclientprotocol/codex-acp': {
    stopsTasks: true,
    limits: ['Codex over ACP does not wake when background work ends; “runner codex” tells more.'],
  },
  'Kimi Code CLI': {
    taskNote: TASK_NOTE,
    limits: [
      `Kimi Code ${NO_EXIT_CODES}`,
      'When background work ends, Kimi Code runs its model and tells its clients nothing of it: that answer is lost.',
    ],
  },
  Copilot: {
    waitsForBackground: true,
    limits: [
      'Copilot mixes what a subagent says into the agent’s own text without a mark; only its tool calls are told apart.',
      'Copilot tells a failure of its model as a text, and the turn counts as finished.',
    ],
  },
  OpenCode: {
    limits: [
      'OpenCode tells nothing of its background subagents over ACP but the text it wakes with; “runner opencode” tells more.',
    ],
  },
};

const PLAIN: AgentProfile = {
  limits: ['Over plain ACP an agent can’t tell of background tasks; a turn it begins by itself ends by silence.'],
};

/** @param introduction its answer to `initialize` */
export function profileOf({ agentInfo, protocolVersion, _meta }: Fields = {}): AgentProfile {
  const name = textOf(fieldsOf(agentInfo).name);
  const profile = name !== null && Object.hasOwn(PROFILES, name) ? (PROFILES[name] ?? PLAIN) : PLAIN;
  if (protocolVersion === 2) return { ...profile, marksTurns: 'both', reportsState: true };
  const offers = listOf(fieldsOf(fieldsOf(fieldsOf(_meta).jetbrains).air).capabilities);
  return profile.marksTurns === 'ends' && offers.includes(ASYNC_TASKS) ? { ...profile, marksTurns: 'both' } : profile;
}
