import type { SelfReport } from '@interlude/protocol/agent-status';
import { MAX_ID_LENGTH, MAX_REPORT_SUMMARY } from '@interlude/protocol/limits';
import { REPORT_STATES } from '@interlude/protocol/session-states';
import * as z from 'zod';
import type { OpenObligation } from '../host/obligations';
import { ownProgram } from '../host/own-program.mjs';

export interface SessionTools {
  report(report: SelfReport): Promise<void>;
  /** Oldest first. */
  obligations(): readonly OpenObligation[];
  /** @returns the refusal; null if the reply was sent */
  reply(messageId: string, text: string): Promise<string | null>;
}

export interface ToolResult {
  text: string;
  isError: boolean;
}

export type CallTool = (tool: ToolName, input: unknown, origin: CallOrigin) => Promise<ToolResult>;

/** Evidence of the agent that made a call. */
export interface CallOrigin {
  /** The name of its MCP client. */
  client: string | null;
  /** Strings in the request's `_meta` that may be ids of the call or session. */
  ids: string[];
}

const MAX_LINK = 2_048;
const MAX_REPLY_TEXT = 32_000;
/** Maximum number of listed replies; the others follow once these are answered. */
const MAX_LISTED = 20;

const reportInput = z.strictObject({
  state: z
    .enum(REPORT_STATES)
    .describe(
      'working: you continue. idle: you wait for new instructions. complete: everything requested is done. failure: you cannot continue without help.',
    ),
  summary: z
    .string()
    .trim()
    .min(1)
    .max(MAX_REPORT_SUMMARY)
    .describe(`One plain sentence on the state of the work, at most ${MAX_REPORT_SUMMARY} characters.`),
  link: z
    .url({ protocol: /^https?$/ })
    .max(MAX_LINK)
    .optional()
    .describe('An http(s) address of the result, such as a pull request.'),
});
const listInput = z.strictObject({});
const replyInput = z.strictObject({
  messageId: z.string().min(1).max(MAX_ID_LENGTH).describe('From list_obligations.'),
  text: z.string().trim().min(1).max(MAX_REPLY_TEXT).describe('The complete answer, in Markdown.'),
});

/**
 * The tools that agents get from Interlude, independent of MCP. They read no files, run nothing and never wait for the
 * dashboard.
 */
export const AGENT_TOOLS = {
  report_status: {
    title: 'Report status',
    description:
      'Reports the state of your work to the people who watch this session. Call it when the state changes, especially when everything is done (complete) or when you are stuck (failure). A report stays until the next one.',
    input: reportInput,
    call: async ({ state, summary, link }: z.infer<typeof reportInput>, tools: SessionTools) => {
      await tools.report({ state, summary, link: link ?? null });
      return done(`Reported: ${state}.`);
    },
  },
  list_obligations: {
    title: 'List messages that wait for a reply',
    description:
      'Lists the messages in this session that still wait for a reply from you, oldest first. Check it before you finish your work.',
    input: listInput,
    call: async (_input: z.infer<typeof listInput>, tools: SessionTools) => done(listOf(tools.obligations())),
  },
  reply: {
    title: 'Reply to a message',
    description:
      'Answers one message that waits for a reply from you. The text is shown to its sender as your answer, so do not repeat it in your own words. Your turn answers its own prompt anyway: use this for other messages.',
    input: replyInput,
    call: async ({ messageId, text }: z.infer<typeof replyInput>, tools: SessionTools) => {
      const refusal = await tools.reply(messageId, text);
      return refusal === null
        ? done('The reply is shown to its sender. Do not repeat it.')
        : refused(`${refusal}\n${listOf(tools.obligations())}`);
    },
  },
} as const;

export type ToolName = keyof typeof AGENT_TOOLS;

export const TOOL_NAMES = Object.keys(AGENT_TOOLS) as ToolName[];

export const MCP_SERVER_NAME = 'interlude';

export function isToolName(name: string): name is ToolName {
  return Object.hasOwn(AGENT_TOOLS, name);
}

/** Validates the input, because callers of the HTTP route don't have the schema. Never rejects because of the input. */
export async function callTool(name: ToolName, input: unknown, tools: SessionTools): Promise<ToolResult> {
  const { input: schema, call } = AGENT_TOOLS[name];
  const parsed = schema.safeParse(input ?? {});
  if (!parsed.success) return refused(z.prettifyError(parsed.error));
  return await (call as (input: unknown, tools: SessionTools) => Promise<ToolResult>)(parsed.data, tools);
}

function listOf(obligations: readonly OpenObligation[]): string {
  if (obligations.length === 0) return 'No message waits for a reply from you.';
  const shown = obligations.slice(0, MAX_LISTED).map(({ messageId, from, text, sentAt }) => ({
    ...{ messageId, from: { kind: from.kind, id: from.id }, text },
    sentAt: new Date(sentAt).toISOString(),
  }));
  const more = obligations.length - shown.length;
  return `Waiting for a reply from you:\n${JSON.stringify(shown, null, 1)}${more > 0 ? `\n(${more} more follow later.)` : ''}`;
}

function done(text: string): ToolResult {
  return { text, isError: false };
}

export function refused(text: string): ToolResult {
  return { text, isError: true };
}

/** Command with which an agent starts `interlude mcp` for one session. */
export interface ToolServer {
  name: string;
  command: string;
  args: string[];
  env: Record<string, string>;
}

/** Variables for the runner's address, and for the ticket of one session. */
export const TOOLS_URL = 'INTERLUDE_TOOLS_URL';
export const TOOLS_TICKET = 'INTERLUDE_TOOLS_TICKET';

/** Passes the ticket in the environment, because every user can read command lines. */
export function toolServer(url: string, ticket: string): ToolServer {
  const env = { [TOOLS_URL]: url, [TOOLS_TICKET]: ticket };
  return { name: MCP_SERVER_NAME, command: process.execPath, args: [ownProgram, 'mcp'], env };
}
