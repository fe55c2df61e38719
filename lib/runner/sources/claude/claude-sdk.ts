import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { SpawnedProcess, SpawnRequest } from './cli-process';

/**
 * As much of the Agent SDK as is used here, said by ourselves: the package is an optional peer, so neither its code nor
 * its types may be needed to build or run the rest.
 *
 * @see `@anthropic-ai/claude-agent-sdk` 0.3.329
 */
export const CLAUDE_SDK = '@anthropic-ai/claude-agent-sdk';

export interface ClaudeSdk {
  query(request: { prompt: AsyncIterable<UserMessage>; options: QueryOptions }): ClaudeQuery;
}

/** Reading it to its end is reading the process to its end. */
export interface ClaudeQuery extends AsyncIterable<unknown> {
  /** @returns the uuids of messages that still wait, where the CLI says so */
  interrupt(): Promise<{ still_queued?: string[] } | undefined>;
  stopTask(taskId: string): Promise<void>;
  /** Ends the CLI: its input at once, itself about two seconds later. */
  close(): void;
}

export interface UserMessage {
  type: 'user';
  message: { role: 'user'; content: { type: 'text'; text: string }[] };
  parent_tool_use_id: null;
  uuid: string;
}

export const PERMISSION_MODES = ['default', 'acceptEdits', 'bypassPermissions', 'plan', 'dontAsk', 'auto'] as const;
export type PermissionMode = (typeof PERMISSION_MODES)[number];

export type PermissionResult =
  | { behavior: 'allow'; updatedInput: Record<string, unknown>; updatedPermissions?: unknown[] }
  | { behavior: 'deny'; message: string };

export interface PermissionContext {
  signal: AbortSignal;
  toolUseID?: string;
  requestId?: string;
  suggestions?: unknown[];
  suppressAlwaysAllowRule?: boolean;
  [detail: string]: unknown;
}

export interface QueryOptions {
  cwd: string;
  /** Replaces the environment of this process. */
  env: Record<string, string | undefined>;
  model?: string;
  permissionMode?: PermissionMode;
  allowDangerouslySkipPermissions?: boolean;
  settingSources: ('user' | 'project' | 'local')[];
  systemPrompt: { type: 'preset'; preset: 'claude_code' };
  includePartialMessages: true;
  /** Tasks are stopped one by one, so an interrupt spares subagents that run in the background. */
  perTaskStopAffordance: true;
  sessionId?: string;
  resume?: string;
  canUseTool?: (tool: string, input: Record<string, unknown>, context: PermissionContext) => Promise<PermissionResult>;
  spawnClaudeCodeProcess: (request: SpawnRequest) => SpawnedProcess;
}

const packageRoot = fileURLToPath(new URL('../../../..', import.meta.url));

/**
 * The SDK, from the first of the folders that can resolve it, else from this package's own.
 * @returns null where it is not installed
 */
export async function loadClaudeSdk(folders: readonly (string | undefined)[]): Promise<ClaudeSdk | null> {
  for (const folder of [...folders, packageRoot]) {
    if (folder === undefined || folder === '') continue;
    const file = resolveFrom(folder);
    if (file !== null) return (await import(pathToFileURL(file).href)) as ClaudeSdk;
  }
  return null;
}

function resolveFrom(folder: string): string | null {
  try {
    return createRequire(join(folder, 'package.json')).resolve(CLAUDE_SDK);
  } catch {
    return null;
  }
}
