import { realpathSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { endSignals } from '../../cli/end-signals';
import { CliError, EXIT } from '../../cli/exit';
import { ensurePackage, type WantedPackage } from '../../install/ensure-package';
import { installedPackage, isWithin } from '../../install/installed-package';
import type { SpawnedProcess, SpawnRequest } from '../../wire/agent-process';

/**
 * As much of the Agent SDK as is used here, said by ourselves: the package is installed by whoever wants it, so neither
 * its code nor its types may be needed to build or run the rest.
 *
 * @see `@anthropic-ai/claude-agent-sdk` 0.3.332
 */
export const CLAUDE_SDK = '@anthropic-ai/claude-agent-sdk';
/** The recordings were made with it, and the adapter was measured against it. */
const CLAUDE_SDK_VERSION = '0.3.332';

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
  message: { role: 'user'; content: ContentBlock[] };
  parent_tool_use_id: null;
  uuid: string;
}

/** @see Messages API */
export type ContentBlock =
  | { type: 'text'; text: string }
  | { type: 'image'; source: Base64Source }
  | {
      type: 'document';
      title: string;
      source: Base64Source | { type: 'text'; media_type: 'text/plain'; data: string };
    };

interface Base64Source {
  type: 'base64';
  media_type: string;
  data: string;
}

export function userMessage({ messageId, text }: { messageId: string; text: string }): UserMessage {
  return {
    type: 'user',
    message: { role: 'user', content: [{ type: 'text', text }] },
    parent_tool_use_id: null,
    uuid: messageId,
  };
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
  systemPrompt: { type: 'preset'; preset: 'claude_code'; append?: string };
  includePartialMessages: true;
  /** Tasks are stopped one by one, so an interrupt spares subagents that run in the background. */
  perTaskStopAffordance: true;
  sessionId?: string;
  resume?: string;
  /** Each `instance` is one of the official MCP SDK, for one process of the CLI. */
  mcpServers?: Record<string, { type: 'sdk'; name: string; instance: unknown }>;
  /** What is used without asking. */
  allowedTools?: string[];
  canUseTool?: (tool: string, input: Record<string, unknown>, context: PermissionContext) => Promise<PermissionResult>;
  spawnClaudeCodeProcess: (request: SpawnRequest) => SpawnedProcess;
}

/** Claude Code's own instructions. @param more what it is to know besides, or null */
export function systemPrompt(more: string | null): QueryOptions['systemPrompt'] {
  return { type: 'preset', preset: 'claude_code', ...(more === null ? {} : { append: more }) };
}

const packageRoot = fileURLToPath(new URL('../../../..', import.meta.url));

/** @param named the folder to have it in instead of Interlude's own */
export function wantedClaudeSdk(dataDir: string, named?: string): WantedPackage {
  const folder = named ?? join(dataDir, 'agents');
  return { name: CLAUDE_SDK, version: CLAUDE_SDK_VERSION, folder, isOwn: named === undefined, called: 'the Agent SDK' };
}

export interface InstalledSdk {
  sdk: ClaudeSdk;
  /** Whether a program belongs to this install: the CLI that the SDK brings. */
  owns(program: string): boolean;
}

/**
 * The SDK that is installed in one of these folders, by default Interlude's own. Its code runs in the runner, beside
 * the token, so the folder an agent works in is none of them, nor is any folder above one of these, where Node itself
 * would go on looking.
 *
 * @param named the one folder to look in
 * @returns null if it is not installed, or so that it can't be loaded
 */
export async function loadClaudeSdk(dataDir: string, named?: string): Promise<InstalledSdk | null> {
  for (const folder of named === undefined ? [wantedClaudeSdk(dataDir).folder, packageRoot] : [named]) {
    const file = installedPackage(folder, CLAUDE_SDK);
    const sdk = file === null ? null : await load(file);
    if (file === null || sdk === null) continue;
    // where its files lie, which a link may have put elsewhere
    const beside = file.slice(0, file.lastIndexOf(`${sep}node_modules${sep}`));
    const own = [realpathSync(join(folder, 'node_modules')), join(beside, 'node_modules')];
    return { sdk, owns: (program) => own.some((place) => isWithin(place, program)) };
  }
  return null;
}

let loads = 0;

/** A module that failed once fails for ever under its address: another one may have come into its place. */
async function load(file: string): Promise<ClaudeSdk | null> {
  const address = pathToFileURL(file);
  if (loads++ > 0) address.search = `?load=${loads}`;
  const { query } = await import(address.href).catch(() => ({}));
  return typeof query === 'function' ? { query } : null;
}

/**
 * The Agent SDK, installed where somebody agrees to it.
 *
 * @param home the data folder
 * @throws CliError where it is missing in the end, or was interrupted
 */
export async function ensureClaudeSdk(
  home: string,
  { sdk, yes }: { sdk: string | undefined; yes: boolean },
): Promise<InstalledSdk> {
  const { ends: signal, release } = endSignals();
  try {
    const ensured = await ensurePackage(wantedClaudeSdk(home, sdk), () => loadClaudeSdk(home, sdk), yes, signal);
    if (ensured.state === 'ready') return ensured.loaded;
    if (ensured.state === 'missing') throw new CliError(EXIT.notInstalled, ensured.why);
    throw new CliError(EXIT.interrupted, 'stopped; nothing was installed');
  } finally {
    release();
  }
}
