import * as z from 'zod';
import { idSchema } from './field-schemas';
import type { CredentialKind, Role, Scope } from './scope';

/** What people and programs are told of credentials, and ask of them. @see PROTOCOL.md, Access */

/** The longest that an embed's token lasts. */
export const MAX_EMBED_SECONDS = 15 * 60;
const MAX_NAME = 100;

export interface Me {
  id: string;
  name: string;
  kind: 'human' | 'runner' | 'embed';
  role: Role;
  scope: Scope;
  credentialId: string;
  expiresAt: number | null;
  /** Of an embed: the one origin whose pages may show it. */
  parentOrigin: string | null;
  /** Whether secrets are taken out of what it is told. */
  redacts: boolean;
}

export interface CredentialSummary {
  id: string;
  kind: CredentialKind;
  name: string;
  role: Role;
  scope: Scope;
  parentOrigin: string | null;
  redacts: boolean;
  memberId: string | null;
  parentId: string | null;
  createdAt: number;
  lastUsedAt: number;
  expiresAt: number | null;
  /** When it ends if it goes unused; null if it does not. */
  idleUntil: number | null;
  revokedAt: number | null;
}

export interface CredentialList {
  credentials: CredentialSummary[];
  /** Whether there are more of a kind than are listed. */
  hasMore: boolean;
}

/** With the secret, which nobody is told again. */
export interface NewToken {
  token: string;
  credential: CredentialSummary;
}

const name = z.string().trim().min(1).max(MAX_NAME);

/**
 * A token for a program. `agent` or `agentPrefix`: the agents that it reaches; a runner's needs one of them, and its
 * outboxes' ids begin with it.
 */
export const newTokenSchema = z.strictObject({
  name: name.optional(),
  role: z.enum(['runner', 'viewer', 'operator', 'admin', 'issuer']).default('runner'),
  agent: idSchema.optional(),
  agentPrefix: idSchema.optional(),
  /** How the ids of a runner's outboxes begin; by default, as its agents' ids do. */
  producerPrefix: idSchema.optional(),
  /** Until when it opens anything, in epoch milliseconds. */
  expiresAt: z.number().int().positive().optional(),
});
export type NewTokenRequest = z.infer<typeof newTokenSchema>;

/** Exactly one of `sessionId`, `agentId` and `fleet` says what the frame shows. */
export const newEmbedSchema = z.strictObject({
  sessionId: idSchema.optional(),
  agentId: idSchema.optional(),
  fleet: z.literal(true).optional(),
  role: z.enum(['viewer', 'operator']).default('viewer'),
  parentOrigin: z.string(),
  ttlSeconds: z.number().int().min(1).max(MAX_EMBED_SECONDS).default(300),
  /** Whether secrets are taken out of what it shows. */
  redact: z.boolean().default(true),
});
export type NewEmbedRequest = z.infer<typeof newEmbedSchema>;

export interface NewEmbed {
  token: string;
  expiresAt: number;
}

export interface SignInCode {
  code: string;
  /** To be opened at the dashboard's own address. */
  path: string;
  expiresAt: number;
}
