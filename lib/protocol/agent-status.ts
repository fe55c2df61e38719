import * as z from 'zod';
import { fieldsOf, listOf, parseJson, textOf, textsOf } from './fields';
import { MAX_EVERY_MS } from './limits';
import { LOG_LEVELS } from './record-vocabulary';
import { REPORT_STATES } from './session-states';

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
  /** Why other commands are unsupported, as part of a sentence. */
  takesNot: lenient(z.record(z.string(), z.string())),
  /** Another agent of its kind that supports them. */
  instead: lenient(z.looseObject({ agentId: z.string(), sessionId: z.string() })),
  /** Limitations of agents of its kind, each in a sentence. */
  limits: lenient(z.array(z.string())),
  /** A current problem between runner and agent, in a sentence that says what to do. */
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
  /** Whether it accepts messages while idle. */
  wakeable: lenient(z.boolean()),
  /** The mode it works in, in the agent's words. */
  mode: text,
  /** Commands that people give by starting a message with `/name`. */
  commands: lenient(z.array(z.looseObject({ name: z.string(), description: text }))),
  /** Attachments that messages to it may carry, of ATTACHMENT_KINDS; absent: none. */
  attachments: lenient(z.array(z.string())),
  /** Number of sessions of its runner. */
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
      /** Time of the report. The same words with another time are a new report. */
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
  /** The changer of the level, its end, and the default. */
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

/** The reporting runner and its interval: what each write of an agent needs of its status. */
export function reporterOf(status: Record<string, unknown> | null) {
  return reporterSchema.parse(status ?? {});
}

/** An agent on the dashboard's own machine that can be connected. */
export interface FoundAgent {
  /** The runner's kind: `codex`. */
  kind: string;
  /** Name for people. */
  title: string;
  /** The program, socket or settings file by which it was found. */
  at: string;
  /** Commands that connect it, without the leading `interlude`. */
  commands: string[];
  /** The effect of the commands, in a sentence. */
  why: string;
}

/** Parses INTERLUDE_FOUND_AGENTS, which the launcher passes to the server. */
export function readFoundAgents(text: string | undefined): FoundAgent[] {
  return listOf(parseJson(text ?? '')).flatMap((one) => {
    const { kind, title, at, commands, why } = fieldsOf(one);
    const found = { kind: textOf(kind), title: textOf(title), at: textOf(at), why: textOf(why) };
    const isWhole = Object.values(found).every((value) => value !== null) && textsOf(commands).length > 0;
    return isWhole ? [{ ...(found as Omit<FoundAgent, 'commands'>), commands: textsOf(commands) }] : [];
  });
}
