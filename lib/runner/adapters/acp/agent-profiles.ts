import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';

/** Capability of claude-agent-acp: reports tasks and between-run turns. */
export const ASYNC_TASKS = 'asyncTasks';

/**
 * Known behavior of specific agents beyond the protocol, measured with the versions named. Other agents get the plain
 * ACP profile.
 */
export interface AgentProfile {
  /**
   * `ends`: the agent marks the end of between-run turns. A prompt sent meanwhile waits for the mark, and text before
   * the mark does not answer that prompt. `both`: the agent marks the start too, so unmarked text between prompts is a
   * remark of its program and opens no turn.
   */
  marksTurns?: 'ends' | 'both';
  /** True if the agent responds to a prompt immediately and ends its turn later, with `state_update` (ACP v2). */
  reportsState?: true;
  /** True if the agent may respond to a prompt before its turn ends. Only a result then ends a turn. */
  respondsEarly?: true;
  /** True if a prompt stays open until its background work has ended. */
  waitsForBackground?: true;
  /** True if a command that is still open at the end of its turn continues in the background. */
  leavesCommandsOpen?: true;
  /** True if tasks can be stopped one by one. */
  stopsTasks?: true;
  /**
   * Note on each task of an agent that never reports how background commands end. If the agent names the process, the
   * runner watches that instead.
   */
  taskNote?: string;
  /** Gaps in the agent's reports, as shown to operators. */
  limits: readonly string[];
}

const NO_ENDS = 'doesn’t report the end of a background command: its task stays open until the agent ends.';
const NO_EXIT_CODES =
  'doesn’t report how a background command ends: its task ends with its process, without an exit code.';
const TASK_NOTE = 'Started. The agent does not report when it ends.';

const PROFILES: Readonly<Record<string, AgentProfile>> = {
  '@agentclientprotocol/claude-agent-acp': { marksTurns: 'ends', respondsEarly: true, stopsTasks: true, limits: [] },
  'qwen-code': {
    marksTurns: 'both',
    limits: ['Qwen Code doesn’t report what its subagents do.'],
  },
  'gemini-cli': {
    taskNote: TASK_NOTE,
    limits: [`Gemini CLI ${NO_EXIT_CODES}`, 'Gemini CLI doesn’t respond when background work ends.'],
  },
  'codex-acp': {
    leavesCommandsOpen: true,
    taskNote: TASK_NOTE,
    limits: [
      `Codex over ACP ${NO_ENDS}`,
      'Codex over ACP doesn’t respond when background work ends. Use “runner codex” for more.',
    ],
  },
  '@agentclientprotocol/codex-acp': {
    stopsTasks: true,
    limits: ['Codex over ACP doesn’t respond when background work ends. Use “runner codex” for more.'],
  },
  'Kimi Code CLI': {
    taskNote: TASK_NOTE,
    limits: [
      `Kimi Code ${NO_EXIT_CODES}`,
      'When background work ends, Kimi Code runs its model without reporting it: that answer is lost.',
    ],
  },
  Copilot: {
    waitsForBackground: true,
    limits: [
      'Copilot mixes subagent text into the agent’s own; only tool calls are attributed.',
      'Copilot reports model failures as text, so the turn counts as finished.',
    ],
  },
  OpenCode: {
    limits: [
      'Over ACP, OpenCode reports only the text that answers its background subagents. Use “runner opencode” for more.',
    ],
  },
};

const PLAIN: AgentProfile = {
  limits: ['Over plain ACP an agent can’t report background tasks, and its between-run turns end after a silence.'],
};

/** @param introduction its response to `initialize` */
export function profileOf({ agentInfo, protocolVersion, _meta }: Fields = {}): AgentProfile {
  const name = textOf(fieldsOf(agentInfo).name);
  const profile = name !== null && Object.hasOwn(PROFILES, name) ? (PROFILES[name] ?? PLAIN) : PLAIN;
  if (protocolVersion === 2) return { ...profile, marksTurns: 'both', reportsState: true };
  const offers = listOf(fieldsOf(fieldsOf(fieldsOf(_meta).jetbrains).air).capabilities);
  return profile.marksTurns === 'ends' && offers.includes(ASYNC_TASKS) ? { ...profile, marksTurns: 'both' } : profile;
}
