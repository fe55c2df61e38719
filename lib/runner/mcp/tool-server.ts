import { ownProgram } from '../shown-command.mjs';
import { MCP_SERVER_NAME } from './agent-tools';

/** How an agent starts `interlude mcp` for one session. */
export interface ToolServer {
  name: string;
  command: string;
  args: string[];
  env: Record<string, string>;
}

/** Where that finds its runner, and the ticket that opens the tools of one session there. */
export const TOOLS_URL = 'INTERLUDE_TOOLS_URL';
export const TOOLS_TICKET = 'INTERLUDE_TOOLS_TICKET';

/** The ticket stands in the environment, which only the server's own user can read, and not on the command line. */
export function toolServer(url: string, ticket: string): ToolServer {
  const env = { [TOOLS_URL]: url, [TOOLS_TICKET]: ticket };
  return { name: MCP_SERVER_NAME, command: process.execPath, args: [ownProgram, 'mcp'], env };
}
