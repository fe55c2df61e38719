import * as z from 'zod';
import { MAX_EVERY_MS } from './limits';
import { LOG_LEVELS } from './record-vocabulary';
import { REPORT_STATES } from './session-states';

/**
 * What a runner says about itself and its agent: the `status` of a status record. `versions.protocol` is the version of
 * the protocol that it speaks.
 *
 * Failure: a field that does not fit its description here counts as absent; the record is never refused for it. The
 * record itself is kept and shown unchanged, including fields that are unknown here.
 */
const lenient = <Type extends z.ZodType>(type: Type) => type.optional().catch(undefined);
const text = lenient(z.string());
const count = z.number().int().min(0);

export const agentStatusSchema = z.looseObject({
  /** The kind of agent: `claude`. */
  kind: text,
  /** How it is reached: `sdk`, `claude-terminal`, `demo`, `recording`. */
  source: text,
  cwd: text,
  model: text,
  host: text,
  runner: lenient(z.looseObject({ id: z.string(), pid: lenient(count), startedAt: lenient(z.number()) })),
  /** `provider` is the agent's own program, by name and version: `Claude Code 2.1.329`. */
  versions: lenient(z.looseObject({ runner: text, protocol: text, provider: text })),
  /** The next record comes within this time. */
  everyMs: lenient(
    z
      .int()
      .min(1)
      .transform((ms) => Math.min(ms, MAX_EVERY_MS)),
  ),
  /** The agent is not a child of its runner: without it, the agent goes on unobserved. */
  agentGoesOn: lenient(z.boolean()),
  /** The commands it acts on; absent, on all but those of waking and the end of a session, which are younger. */
  takes: lenient(z.array(z.string())),
  /** Why it does not act on the others, as part of a sentence. */
  takesNot: lenient(z.record(z.string(), z.string())),
  /** Another agent of its kind that can be asked. */
  instead: lenient(z.looseObject({ agentId: z.string(), sessionId: z.string() })),
  /** What its kind can't tell or do, or only in part, each in a sentence. */
  limits: lenient(z.array(z.string())),
  /** What is wrong between the runner and the agent now, in a sentence that says what to do. */
  trouble: text,
  /**
   * The agent, which its runner did not start, does not answer: since when, why, what the session was in the middle of
   * then, and whether any session of the agent was in the middle of something. Absent while it answers.
   */
  unreachable: lenient(
    z.looseObject({
      since: z.number(),
      reason: text,
      last: lenient(z.enum(['working', 'needs-input', 'waiting-on-background'])),
      wasAtWork: lenient(z.boolean()),
    }),
  ),
  /** Whether it takes messages while it is idle, where that is not always so. */
  wakeable: lenient(z.boolean()),
  /** The mode it works in, in the agent's words. */
  mode: text,
  /** What people can have it do by a `/name` at the beginning of a message. */
  commands: lenient(z.array(z.looseObject({ name: z.string(), description: text }))),
  /** What messages to it may carry, of ATTACHMENT_KINDS; absent: nothing. */
  attachments: lenient(z.array(z.string())),
  /** How many sessions its runner carries. */
  sessions: lenient(count),
  process: lenient(
    z.looseObject({
      state: z.enum(['starting', 'running', 'restarting', 'exited']),
      pid: z.number().nullable(),
      exitCode: z.number().nullable(),
      signal: lenient(z.string().nullable()),
    }),
  ),
  /**
   * Processor seconds of the agent's processes, reported while an open turn is silent. A changed number is a sign of work.
   */
  cpuSeconds: lenient(z.number().min(0)),
  /**
   * In a word, what the agent says of itself (`working`, `idle`, `complete`, `failure`), or what it is seen to do
   * (`busy`, `still`, `compacting`).
   */
  state: text,
  /** What the agent said of itself, at length, in each record until it says something else. */
  report: lenient(
    z.looseObject({
      state: z.enum(REPORT_STATES),
      /** Longer than MAX_REPORT_SUMMARY, it is cut. */
      summary: lenient(z.string()),
      link: lenient(z.string()),
      /** The turn in which it was said. */
      turnId: lenient(z.string().nullable()),
      /** When it was said: with another time, the same words are a new report. */
      at: lenient(z.number()),
    }),
  ),
  openTurnId: lenient(z.string().nullable()),
  tasks: lenient(z.array(z.looseObject({ id: z.string(), description: z.string() }))),
  requests: lenient(z.array(z.string())),
  /** Messages the agent holds that no turn has answered. */
  pendingMessages: lenient(count),
  outbox: lenient(z.looseObject({ depth: count, oldestAgeMs: z.number().nullable(), poisoned: count, lost: count })),
  logLevel: lenient(z.enum(LOG_LEVELS)),
  /** Who changed the level, until when, and what it is otherwise. */
  logSwitch: lenient(
    z.looseObject({
      by: lenient(z.string().nullable()),
      until: lenient(z.number().nullable()),
      base: lenient(z.enum(LOG_LEVELS)),
    }),
  ),
});

export type AgentStatus = z.infer<typeof agentStatusSchema>;

/** What is certain of it. */
export function readAgentStatus(status: Record<string, unknown> | null): AgentStatus {
  return agentStatusSchema.parse(status ?? {});
}

const reporterSchema = z.object({ runner: agentStatusSchema.shape.runner, everyMs: agentStatusSchema.shape.everyMs });

/** Who says it, and how often: all that has to be known of a status each time its agent is written. */
export function reporterOf(status: Record<string, unknown> | null) {
  return reporterSchema.parse(status ?? {});
}
