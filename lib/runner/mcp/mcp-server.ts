import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { RUNNER_VERSION } from '../host/own-program.mjs';
import { AGENT_TOOLS, type CallTool, MCP_SERVER_NAME, TOOL_NAMES } from './agent-tools';

/**
 * Loads the SDK in advance, which takes a third of a second. The first server reports errors.
 */
export function preloadMcpSdk(): void {
  void loadSdk().catch(() => undefined);
}

const loadSdk = () => import('@modelcontextprotocol/sdk/server/mcp.js');

/**
 * Creates an MCP server for one connection. Loads the SDK on first use, because it is large.
 */
export async function newMcpServer(call: CallTool): Promise<McpServer> {
  const sdk = await loadSdk();
  const server = new sdk.McpServer({ name: MCP_SERVER_NAME, version: RUNNER_VERSION });
  for (const name of TOOL_NAMES) {
    const { title, description, input } = AGENT_TOOLS[name];
    const annotations = {
      title,
      readOnlyHint: name === 'list_obligations',
      destructiveHint: false,
      openWorldHint: false,
    };
    server.registerTool(
      name,
      { title, description, inputSchema: input, annotations },
      async (args: unknown, { _meta }: { _meta?: unknown }) => {
        const client = server.server.getClientVersion()?.name ?? null;
        const { text, isError } = await call(name, args, { client, ids: idsIn(_meta) });
        return { content: [{ type: 'text' as const, text }], isError };
      },
    );
  }
  return server;
}

const MAX_IDS = 16;
const MAX_DEPTH = 3;

/** Codex and Claude Code name the model's call in `_meta`, each under its own names. */
function idsIn(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return /^[\w.:~-]{6,128}$/.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return [];
  const ids = Object.values(value).flatMap((inner) => idsIn(inner, depth + 1));
  return [...new Set(ids)].slice(0, MAX_IDS);
}

/** Serves the agent that started this process, until it closes the connection. */
export async function serveOverStdio(call: CallTool): Promise<void> {
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
  const server = await newMcpServer(call);
  const closed = new Promise<void>((resolve) => {
    // The transport does not handle the end of its input.
    for (const end of ['end', 'close', 'error']) process.stdin.once(end, resolve);
    process.stdout.once('error', resolve);
  });
  await server.connect(new StdioServerTransport());
  await closed;
  await server.close();
}
