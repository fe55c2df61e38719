import { realpathSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { CliError, EXIT, stopSignals } from '../../cli/command';
import { ensurePackage, installedPackage, isWithin, type WantedPackage } from '../../cli/install-package';
import type { SpawnedProcess, SpawnRequest } from '../../host/agent-process';

/**
 * Types for the used part of the Agent SDK, declared by hand: operators install the SDK, so Interlude must build and
 * run without its code and types.
 *
 * @see `@anthropic-ai/claude-agent-sdk` 0.3.332
 */
export const CLAUDE_SDK = '@anthropic-ai/claude-agent-sdk';
/** Version against which the adapter was recorded and measured. */
const CLAUDE_SDK_VERSION = '0.3.332';

export interface ClaudeSdk {
  query(request: { prompt: AsyncIterable<UserMessage>; options: QueryOptions }): ClaudeQuery;
}

/** The iteration ends with the process. */
export interface ClaudeQuery extends AsyncIterable<unknown> {
  /** @returns uuids of queued messages, if the CLI reports them */
  interrupt(): Promise<{ still_queued?: string[] } | undefined>;
  stopTask(taskId: string): Promise<void>;
  /** Closes stdin immediately; the CLI exits about two seconds later. */
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
  env: Record<string, string | undefined>;
  model?: string;
  permissionMode?: PermissionMode;
  allowDangerouslySkipPermissions?: boolean;
  settingSources: ('user' | 'project' | 'local')[];
  systemPrompt: { type: 'preset'; preset: 'claude_code'; append?: string };
  includePartialMessages: true;
  /** Makes an interrupt spare background subagents. */
  perTaskStopAffordance: true;
  sessionId?: string;
  resume?: string;
  /** Each `instance` is an MCP SDK server for one CLI process. */
  mcpServers?: Record<string, { type: 'sdk'; name: string; instance: unknown }>;
  /** Tools allowed without a permission request. */
  allowedTools?: string[];
  canUseTool?: (tool: string, input: Record<string, unknown>, context: PermissionContext) => Promise<PermissionResult>;
  spawnClaudeCodeProcess: (request: SpawnRequest) => SpawnedProcess;
}

/** @param more appended to Claude Code's own instructions */
export function systemPrompt(more: string | null): QueryOptions['systemPrompt'] {
  return { type: 'preset', preset: 'claude_code', ...(more === null ? {} : { append: more }) };
}

const packageRoot = fileURLToPath(new URL('../../../..', import.meta.url));

/** @param named install folder instead of Interlude's own */
export function wantedClaudeSdk(dataDir: string, named?: string): WantedPackage {
  const folder = named ?? join(dataDir, 'agents');
  return { name: CLAUDE_SDK, version: CLAUDE_SDK_VERSION, folder, isOwn: named === undefined, called: 'the Agent SDK' };
}

export interface InstalledSdk {
  sdk: ClaudeSdk;
  /** True if a program, such as the bundled CLI, belongs to this install. */
  owns(program: string): boolean;
}

/**
 * Loads the installed SDK from Interlude's folders. Its code runs in the runner, which holds the token, so neither the
 * agent's working folder nor its parents are searched, although Node would.
 * @param named the only folder to search
 * @returns null if it is missing or can't be loaded
 */
export async function loadClaudeSdk(dataDir: string, named?: string): Promise<InstalledSdk | null> {
  for (const folder of named === undefined ? [wantedClaudeSdk(dataDir).folder, packageRoot] : [named]) {
    const file = installedPackage(folder, CLAUDE_SDK);
    const sdk = file === null ? null : await load(file);
    if (file === null || sdk === null) continue;
    // The package may be a link, so the folder that really contains it counts too.
    const realRoot = file.slice(0, file.lastIndexOf(`${sep}node_modules${sep}`));
    const own = [realpathSync(join(folder, 'node_modules')), join(realRoot, 'node_modules')];
    return { sdk, owns: (program) => own.some((root) => isWithin(root, program)) };
  }
  return null;
}

let loads = 0;

/** Node caches a failed module under its URL, so each retry after a reinstall uses a new URL. */
async function load(file: string): Promise<ClaudeSdk | null> {
  const address = pathToFileURL(file);
  if (loads++ > 0) address.search = `?load=${loads}`;
  const { query } = await import(address.href).catch(() => ({}));
  return typeof query === 'function' ? { query } : null;
}

/**
 * Loads the Agent SDK; installs it after consent.
 * @param home the data folder
 * @throws CliError if it is still missing or the installation was interrupted
 */
export async function ensureClaudeSdk(
  home: string,
  { sdk, yes }: { sdk: string | undefined; yes: boolean },
): Promise<InstalledSdk> {
  const { ends: signal, release } = stopSignals();
  try {
    const ensured = await ensurePackage(wantedClaudeSdk(home, sdk), () => loadClaudeSdk(home, sdk), yes, signal);
    if (ensured.state === 'ready') return ensured.loaded;
    if (ensured.state === 'missing') throw new CliError(EXIT.notInstalled, ensured.why);
    throw new CliError(EXIT.interrupted, 'stopped; nothing was installed');
  } finally {
    release();
  }
}
