import type { SelfReport } from '@interlude/protocol/agent-state';
import { REPORT_STATES } from '@interlude/protocol/agent-state';
import { MAX_ID_LENGTH, MAX_REPORT_SUMMARY } from '@interlude/protocol/limits';
import * as z from 'zod';
import type { PendingReply } from '../host/pending-replies';

/**
 * The tools that an agent gets from Interlude, without the protocol that carries them to it. They speak to Interlude
 * only: they read no file, run nothing, and never wait for the dashboard.
 */
export interface SessionTools {
  report(report: SelfReport): Promise<void>;
  /** Oldest first. */
  owed(): readonly PendingReply[];
  /** @returns why it was not said; null if it was */
  reply(messageId: string, text: string): Promise<string | null>;
}

/** What the agent reads. */
export interface ToolAnswer {
  text: string;
  isError: boolean;
}

/** Calls a tool, wherever its session is. */
export type CallTool = (tool: ToolName, input: unknown, made: CallMade) => Promise<ToolAnswer>;

/** How the agent made a call. */
export interface CallMade {
  /** What its MCP client calls itself. */
  client: string | null;
  /** Words of the request's `_meta` that may be ids: the call's, the session's. */
  ids: string[];
}

const MAX_LINK = 2_048;
const MAX_REPLY_TEXT = 32_000;
/** More at once would bury the agent; the others follow once these are answered. */
const MOST_LISTED = 20;

const reportInput = z.strictObject({
  state: z
    .enum(REPORT_STATES)
    .describe(
      'working: you go on. idle: you wait for new instructions. complete: all that was asked is done. failure: you cannot go on without help.',
    ),
  summary: z
    .string()
    .trim()
    .min(1)
    .max(MAX_REPORT_SUMMARY)
    .describe(`One plain sentence on where the work stands, at most ${MAX_REPORT_SUMMARY} characters.`),
  link: z
    .url({ protocol: /^https?$/ })
    .max(MAX_LINK)
    .optional()
    .describe('An http(s) address that shows the result, such as a pull request.'),
});
const listInput = z.strictObject({});
const replyInput = z.strictObject({
  messageId: z.string().min(1).max(MAX_ID_LENGTH).describe('As list_obligations gives it.'),
  text: z.string().trim().min(1).max(MAX_REPLY_TEXT).describe('The whole answer, in Markdown.'),
});

export const AGENT_TOOLS = {
  report_status: {
    title: 'Report status',
    description:
      'Tells the people who watch this session how your work stands. Call it when that changes: above all when all is done (complete) or when you are stuck (failure). A report stays until the next one.',
    input: reportInput,
    call: async ({ state, summary, link }: z.infer<typeof reportInput>, tools: SessionTools) => {
      await tools.report({ state, summary, link: link ?? null });
      return done(`Reported: ${state}.`);
    },
  },
  list_obligations: {
    title: 'List messages that wait for a reply',
    description:
      'Lists the messages in this session that still wait for a reply from you, oldest first. Look before you end your work.',
    input: listInput,
    call: async (_input: z.infer<typeof listInput>, tools: SessionTools) => done(listOf(tools.owed())),
  },
  reply: {
    title: 'Reply to a message',
    description:
      'Answers one message that waits for a reply from you. The text is shown to its sender as your answer, so do not repeat it in your own words. What you say in your turn answers the prompt of that turn anyway: use this for other messages.',
    input: replyInput,
    call: async ({ messageId, text }: z.infer<typeof replyInput>, tools: SessionTools) => {
      const refusal = await tools.reply(messageId, text);
      return refusal === null
        ? done('The reply is shown to its sender. Do not repeat it.')
        : refused(`${refusal}\n${listOf(tools.owed())}`);
    },
  },
} as const;

export type ToolName = keyof typeof AGENT_TOOLS;

export const TOOL_NAMES = Object.keys(AGENT_TOOLS) as ToolName[];

/** The name under which agents know the server that has the tools. */
export const MCP_SERVER_NAME = 'interlude';

export function isToolName(name: string): name is ToolName {
  return Object.hasOwn(AGENT_TOOLS, name);
}

/** Judges the input itself: not everybody who calls has been told the schema. Never rejects for what the agent wrote. */
export async function callTool(name: ToolName, input: unknown, tools: SessionTools): Promise<ToolAnswer> {
  const { input: schema, call } = AGENT_TOOLS[name];
  const parsed = schema.safeParse(input ?? {});
  if (!parsed.success) return refused(z.prettifyError(parsed.error));
  return await (call as (input: unknown, tools: SessionTools) => Promise<ToolAnswer>)(parsed.data, tools);
}

function listOf(owed: readonly PendingReply[]): string {
  if (owed.length === 0) return 'No message waits for a reply from you.';
  const shown = owed.slice(0, MOST_LISTED).map(({ messageId, from, text, sentAt }) => ({
    ...{ messageId, from: { kind: from.kind, id: from.id }, text },
    sentAt: new Date(sentAt).toISOString(),
  }));
  const more = owed.length - shown.length;
  return `Waiting for a reply from you:\n${JSON.stringify(shown, null, 1)}${more > 0 ? `\n(${more} more follow later.)` : ''}`;
}

function done(text: string): ToolAnswer {
  return { text, isError: false };
}

export function refused(text: string): ToolAnswer {
  return { text, isError: true };
}
