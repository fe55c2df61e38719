import * as z from 'zod';
import { SessionState } from './field-schemas';
import { MAX_EVERY_MS } from './limits';
import { REPORT_STATES } from './session-states';
import { LOG_LEVELS } from './vocabulary';

/**
 * A runner's report about itself and its agent: the `status` of a status record. `versions.protocol` is the runner's
 * protocol version.
 *
 * Failure: a field of the wrong shape counts as absent and never rejects the record. The record is stored and shown
 * unchanged, with unknown fields.
 */
const lenient = <Type extends z.ZodType>(type: Type) => type.optional().catch(undefined);
const text = lenient(z.string());
const count = z.number().int().min(0);

const agentStatusSchema = z.looseObject({
  /** The kind of agent: `claude`. */
  kind: text,
  /** The connection to it: `sdk`, `claude-terminal`, `demo`, `recording`. */
  source: text,
  cwd: text,
  model: text,
  host: text,
  runner: lenient(z.looseObject({ id: z.string(), pid: lenient(count), startedAt: lenient(z.number()) })),
  /** `provider` is the agent's own program, by name and version: `Claude Code 2.1.329`. */
  versions: lenient(z.looseObject({ runner: text, protocol: text, provider: text })),
  /** The next record arrives within this time. */
  everyMs: lenient(
    z
      .int()
      .min(1)
      .transform((ms) => Math.min(ms, MAX_EVERY_MS)),
  ),
  /** The agent is not a child of its runner, so it continues unobserved without it. */
  agentGoesOn: lenient(z.boolean()),
  /** Supported commands. If absent: all except waking and ending a session, which were added later. */
  takes: lenient(z.array(z.string())),
  /** The reason for unsupported commands, as part of a sentence. */
  takesNot: lenient(z.record(z.string(), z.string())),
  /** Another agent of its kind that supports them. */
  instead: lenient(z.looseObject({ agentId: z.string(), sessionId: z.string() })),
  /** Limitations of agents of its kind, each in a sentence. */
  limits: lenient(z.array(z.string())),
  /** A current problem between runner and agent, in a sentence with a remedy. */
  trouble: text,
  /**
   * An outage of an agent that its runner did not start: since when, why, the session's state then, and whether any
   * session of the agent was at work. Absent while the agent answers.
   */
  unreachable: lenient(
    z.looseObject({
      since: z.number(),
      reason: text,
      last: lenient(z.enum(['working', 'needs-input', 'waiting-on-background'])),
      wasAtWork: lenient(z.boolean()),
    }),
  ),
  /** True if it accepts messages while idle. */
  wakeable: lenient(z.boolean()),
  /** The mode it works in, in the agent's words. */
  mode: text,
  /** Commands that people give by starting a message with `/name`. */
  commands: lenient(z.array(z.looseObject({ name: z.string(), description: text }))),
  /** Attachments that messages to it may carry, of ATTACHMENT_KINDS; absent: none. */
  attachments: lenient(z.array(z.string())),
  /** Number of sessions on its runner. */
  sessions: lenient(count),
  process: lenient(
    z.looseObject({
      state: z.enum(['starting', 'running', 'restarting', 'exited']),
      pid: z.number().nullable(),
      exitCode: z.number().nullable(),
      signal: lenient(z.string().nullable()),
    }),
  ),
  /** Processor seconds of the agent's processes, reported while an open turn is silent. Growth shows work. */
  cpuSeconds: lenient(z.number().min(0)),
  /**
   * The agent's self-report (`working`, `idle`, `complete`, `failure`), or its observed activity (`busy`, `still`,
   * `compacting`).
   */
  state: text,
  /** The agent's full self-report, repeated in each record until it changes. */
  report: lenient(
    z.looseObject({
      state: z.enum(REPORT_STATES),
      /** Truncated to MAX_REPORT_SUMMARY. */
      summary: lenient(z.string()),
      link: lenient(z.string()),
      /** The turn of the report. */
      turnId: lenient(z.string().nullable()),
      /** Time of the report. The same text with another time is a new report. */
      at: lenient(z.number()),
    }),
  ),
  openTurnId: lenient(z.string().nullable()),
  tasks: lenient(z.array(z.looseObject({ id: z.string(), description: z.string() }))),
  requests: lenient(z.array(z.string())),
  /** Messages held by the agent that no turn has answered. */
  pendingMessages: lenient(count),
  outbox: lenient(z.looseObject({ depth: count, oldestAgeMs: z.number().nullable(), poisoned: count, lost: count })),
  logLevel: lenient(z.enum(LOG_LEVELS)),
  /** Author of the change, its expiry, and the default level. */
  logSwitch: lenient(
    z.looseObject({
      by: lenient(z.string().nullable()),
      until: lenient(z.number().nullable()),
      base: lenient(z.enum(LOG_LEVELS)),
    }),
  ),
});

export type AgentStatus = z.infer<typeof agentStatusSchema>;

/** The well-formed fields of a status record. */
export function readAgentStatus(status: Record<string, unknown> | null): AgentStatus {
  return agentStatusSchema.parse(status ?? {});
}

const reporterSchema = z.object({ runner: agentStatusSchema.shape.runner, everyMs: agentStatusSchema.shape.everyMs });

/** The reporting runner and its interval, the part of the status that every write of an agent needs. */
export function reporterOf(status: Record<string, unknown> | null) {
  return reporterSchema.parse(status ?? {});
}

/** Evidence about what a session's agent does. Times are on the server's clock. */

export const ReportState = z.enum(REPORT_STATES);

export const SelfReport = z
  .object({ state: ReportState, summary: z.string().nullable(), link: z.string().nullable() })
  .describe('An agent’s report about itself.');
export type SelfReport = z.infer<typeof SelfReport>;

/** The newest observation from one source. */
const observed = <Value extends z.ZodType>(value: Value) =>
  z.object({
    observedAt: z.number().describe('Time of receipt, on the server’s clock.'),
    occurredAt: z
      .number()
      .optional()
      .describe('When it happened, on the server’s clock. Absent unless over a minute before `observedAt`.'),
    turnId: z.string().nullable().describe('The turn it is about; null if none.'),
    value,
  });
export interface Observed<Value> {
  observedAt: number;
  occurredAt?: number | undefined;
  turnId: string | null;
  value: Value;
}

export const ProcessExit = z.object({
  code: z.number().nullable(),
  signal: z.string().nullable().describe('The signal that ended the process: `SIGKILL`.'),
  reason: z.string().nullable(),
});
export type ProcessExit = z.infer<typeof ProcessExit>;

export const TurnObserved = z
  .object({
    state: z.enum(['running', 'finished', 'failed', 'interrupted']),
    message: z.string().optional(),
    isSilent: z.literal(true).optional().describe('The turn finished without any text.'),
    isOutweighed: z
      .literal(true)
      .optional()
      .describe('The turn failed, and the agent has reported since that its work is done.'),
  })
  .describe('State of the newest turn.');

export const Silence = z
  .object({
    limitMs: z.number().describe('A silence of this length counts as no progress.'),
    call: z.string().optional().describe('Name of the running tool call.'),
  })
  .describe('A working agent’s silence of at least ten minutes.');
export type Silence = z.infer<typeof Silence>;

export const Observations = z
  .object({
    session: observed(z.null()).describe('The session is known.'),
    process: observed(ProcessExit).optional().describe('The agent’s process has ended.'),
    request: observed(z.string()).optional().describe('The agent waits for an answer to this request.'),
    message: observed(z.null()).optional().describe('A person’s message that is newer than everything from the agent.'),
    report: observed(SelfReport)
      .extend({
        isOutdated: z
          .literal(true)
          .optional()
          .describe('A person has written since, and the agent has not answered yet.'),
      })
      .optional(),
    turn: observed(TurnObserved).optional(),
    agent: observed(z.enum(['running', 'still', 'compacting', 'restarting']))
      .optional()
      .describe('The agent’s activity as its runner sees it, later than everything known of its turns.'),
    task: observed(z.number()).optional().describe('Number of running background tasks, and since when any runs.'),
    cpu: observed(z.number())
      .optional()
      .describe('Processor seconds of the agent’s processes, observed when they last grew during a silence.'),
    silence: observed(Silence).optional(),
  })
  .describe('The newest observation from each source. Together they decide the state.');
export type Observations = z.infer<typeof Observations>;

export const EvidenceSource = z
  .enum(['session', 'process', 'request', 'message', 'report', 'turn', 'agent', 'task', 'connection'])
  .describe('An observation, or `connection`: the age of the last sign of life.');
export type EvidenceSource = z.infer<typeof EvidenceSource>;

export const StateRule = z
  .literal([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])
  .describe('Number of the rule that decided the state (PROTOCOL.md, State).');
export type StateRule = z.infer<typeof StateRule>;

export const StateNote = z
  .enum(['delivering', 'resumed', 'compacting', 'restarting', 'no-progress', 'no-output', 'inferred'])
  .describe(
    '`delivering`: a message is on its way to the agent. `resumed`: the agent works although it had reported to be done. `compacting`, `restarting`: what it does instead of its work. `no-progress`: no event, output or processor time for as long as `silence` allows. `no-output`: its last turn finished without any text. `inferred`: derived, not reported by the agent.',
  );
export type StateNote = z.infer<typeof StateNote>;

export const StateEvidence = z
  .object({
    rule: StateRule,
    source: EvidenceSource,
    observedAt: z.number().describe('On the server’s clock.'),
    turnId: z.string().optional(),
    report: SelfReport.extend({ observedAt: z.number(), isOutdated: z.literal(true).optional() })
      .optional()
      .describe('The agent’s last self-report, whether or not it decided.'),
    last: SessionState.optional().describe('State of an unknown session at its last sign of life.'),
    note: StateNote.optional(),
  })
  .describe('Why a session is in its state.');
export type StateEvidence = z.infer<typeof StateEvidence>;
