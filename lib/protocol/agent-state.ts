import * as z from 'zod';
import { SessionState } from './field-schemas';
import { REPORT_STATES } from './session-states';

/** Evidence about what a session's agent does. Times are on the server's clock. */

export const ReportState = z.enum(REPORT_STATES);

export const SelfReport = z
  .object({ state: ReportState, summary: z.string().nullable(), link: z.string().nullable() })
  .describe('An agent’s report about itself.');
export type SelfReport = z.infer<typeof SelfReport>;

/** The newest observation from one source. */
const observed = <Value extends z.ZodType>(value: Value) =>
  z.object({
    observedAt: z.number().describe('When the server learned of it, on the server’s clock.'),
    turnId: z.string().nullable().describe('The turn it is about; null if none.'),
    value,
  });
export interface Observed<Value> {
  observedAt: number;
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
    limitMs: z.number().describe('A silence this long counts as no progress.'),
    call: z.string().optional().describe('Name of the running tool call.'),
  })
  .describe('A working agent’s silence of at least ten minutes.');
export type Silence = z.infer<typeof Silence>;

export const Observations = z
  .object({
    session: observed(z.null()).describe('The session is known.'),
    process: observed(ProcessExit).optional().describe('The agent’s process has ended.'),
    request: observed(z.string()).optional().describe('The agent waits for an answer to this request.'),
    message: observed(z.null()).optional().describe('A message newer than anything the agent sent.'),
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
