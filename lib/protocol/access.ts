import * as z from 'zod';
import { idSchema } from './field-schemas';
import { type CredentialKind, MEMBER_ROLES, type Role, type Scope } from './scope';

/** What people and programs are told of credentials, and ask of them. @see PROTOCOL.md, Access */

/** The longest that an embed's token lasts. */
export const MAX_EMBED_SECONDS = 15 * 60;
const MAX_NAME = 100;

export interface Me {
  /**
   * The person or program: a member's id in all their sign-ins, `local` in every sign-in with this machine's link or
   * token, `owner` for the installation's token, else the id of the program's credential.
   */
  id: string;
  name: string;
  kind: 'human' | 'runner' | 'embed';
  role: Role;
  scope: Scope;
  /** The sign-in or token of this request; several may have one `id`. */
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
 * outboxes' ids begin with it. `anyAgent`: for the runners of a machine on which anybody who can read the token could
 * be any of its agents anyway.
 */
export const newTokenSchema = z.strictObject({
  name: name.optional(),
  role: z.enum(['runner', 'viewer', 'operator', 'admin', 'issuer']).default('runner'),
  agent: idSchema.optional(),
  agentPrefix: idSchema.optional(),
  /** How the ids of a runner's outboxes begin; by default, as its agents' ids do. */
  producerPrefix: idSchema.optional(),
  /** A runner's that may speak for every agent, as that of this machine does. */
  anyAgent: z.literal(true).optional(),
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

/** Those who are signed in with the sender's name: of a member all of theirs, wherever they signed in. */
export interface OwnSignIns {
  signIns: CredentialSummary[];
}

/** Somebody who has signed in with the identity provider. */
export interface MemberSummary {
  id: string;
  name: string;
  email: string | null;
  /** The provider. */
  issuer: string;
  /** What counts: the given one, else what their groups made of them. */
  role: Role;
  /** What the provider's groups made of them when they last signed in. */
  groupRole: Role;
  /** What an admin gave them instead; null if nothing. */
  givenRole: Role | null;
  createdAt: number;
  lastSignInAt: number;
  /** Since when they may not come in; null if they may. */
  blockedAt: number | null;
  /** How often they are signed in now. */
  signInCount: number;
}

export interface MemberList {
  members: MemberSummary[];
  /** Whether there are more than are listed. */
  hasMore: boolean;
}

/** What is left out stays. `role: null` takes back what an admin gave: then the provider's groups decide again. */
export const changeMemberSchema = z.strictObject({
  role: z.enum(MEMBER_ROLES).nullable().optional(),
  blocked: z.boolean().optional(),
});
export type ChangeMemberRequest = z.infer<typeof changeMemberSchema>;
