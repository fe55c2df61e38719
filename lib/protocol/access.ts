import * as z from 'zod';
import { idSchema } from './field-schemas';
import { MEMBER_ROLES, ROLES, type Scope as ScopeType } from './scope';

/** Credentials, members and the audit: requests and responses. @see PROTOCOL.md, Access */

/** Longest lifetime of an embed token, in seconds. */
const MAX_EMBED_SECONDS = 15 * 60;
const MAX_NAME = 100;

export const Role = z.enum(ROLES);

export const Scope: z.ZodType<ScopeType> = z
  .union([
    z.object({ kind: z.literal('everything') }),
    z
      .object({
        kind: z.literal('agents'),
        ids: z.array(z.string()).readonly(),
        prefixes: z.array(z.string()).readonly(),
        producerPrefix: z.string().optional().describe('Prefix of a runner’s outbox ids.'),
      })
      .describe('Agents by id or id prefix, with all that is theirs.'),
    z.object({ kind: z.literal('session'), sessionId: z.string() }),
    z.object({ kind: z.literal('log'), agentId: z.string() }).describe('One agent’s log and nothing else.'),
    z
      .object({ kind: z.literal('fleet'), within: z.lazy(() => Scope) })
      .describe('The session list of `within`: rows, counts and changes. No session can be opened.'),
  ])
  .describe('The part of the fleet that a credential reaches.');

export const CredentialKind = z
  .enum(['session', 'token', 'embed', 'code'])
  .describe('`session`: a browser sign-in. `token`: a program. `embed`: a frame in a console. `code`: a sign-in link.');

export const Me = z.object({
  id: z
    .string()
    .describe(
      'The person or program: a member’s id in all their sign-ins, `local` for sign-ins with this machine’s link or token, `owner` for the installation’s token, else the id of the program’s credential.',
    ),
  name: z.string(),
  kind: z.enum(['human', 'runner', 'embed']),
  role: Role,
  scope: Scope,
  credentialId: z.string().describe('The sign-in or token of this request. Several may share one `id`.'),
  expiresAt: z.number().nullable(),
  parentOrigin: z.string().nullable().describe('For an embed: the only origin whose pages may frame it.'),
  redacts: z.boolean().describe('True if its responses are redacted.'),
});
export type Me = z.infer<typeof Me>;

export const CredentialSummary = z.object({
  id: z.string(),
  kind: CredentialKind,
  name: z.string(),
  role: Role,
  scope: Scope,
  parentOrigin: z.string().nullable(),
  redacts: z.boolean(),
  memberId: z.string().nullable(),
  parentId: z.string().nullable(),
  createdAt: z.number(),
  lastUsedAt: z.number(),
  expiresAt: z.number().nullable(),
  idleUntil: z.number().nullable().describe('When it expires if unused; null if it does not.'),
  revokedAt: z.number().nullable(),
});
export type CredentialSummary = z.infer<typeof CredentialSummary>;

export const CredentialResponse = z.object({ credential: CredentialSummary });

export const CredentialList = z.object({
  credentials: z.array(CredentialSummary),
  hasMore: z.boolean().describe('There are more of some kind than listed.'),
});
export type CredentialList = z.infer<typeof CredentialList>;

export const NewToken = CredentialResponse.extend({ token: z.string().describe('The secret. It is shown only once.') });
export type NewToken = z.infer<typeof NewToken>;

const name = z.string().trim().min(1).max(MAX_NAME);

/**
 * A token for a program. `agent` or `agentPrefix`: the agents in its scope. A runner's token needs one of them, and its
 * outbox ids start with it. `anyAgent` is for the runners of a machine on which every reader of the token could act as any of its
 * agents anyway.
 */
export const newTokenSchema = z.strictObject({
  name: name.optional(),
  role: z.enum(['runner', 'viewer', 'operator', 'admin', 'issuer']).default('runner'),
  agent: idSchema.optional(),
  agentPrefix: idSchema.optional(),
  producerPrefix: idSchema.optional().describe('Prefix of a runner’s outbox ids; by default, that of its agents.'),
  anyAgent: z.literal(true).optional().describe('For a runner: may speak for every agent.'),
  expiresAt: z.number().int().positive().optional().describe('Expiry in epoch milliseconds.'),
});
export type NewTokenRequest = z.infer<typeof newTokenSchema>;

/** Exactly one of `sessionId`, `agentId` and `fleet` chooses what the frame shows. */
export const newEmbedSchema = z.strictObject({
  sessionId: idSchema.optional(),
  agentId: idSchema.optional(),
  fleet: z.literal(true).optional(),
  role: z.enum(['viewer', 'operator']).default('viewer'),
  parentOrigin: z.string(),
  ttlSeconds: z.number().int().min(1).max(MAX_EMBED_SECONDS).default(300),
  redact: z.boolean().default(true).describe('True if the frame’s content is redacted.'),
});
export type NewEmbedRequest = z.infer<typeof newEmbedSchema>;

export const NewEmbed = z.object({ token: z.string(), expiresAt: z.number() });
export type NewEmbed = z.infer<typeof NewEmbed>;

export const SignInCode = z.object({
  code: z.string(),
  path: z.string().describe('To open on the dashboard’s own origin.'),
  expiresAt: z.number(),
});
export type SignInCode = z.infer<typeof SignInCode>;

export const OwnSignIns = z
  .object({ signIns: z.array(CredentialSummary) })
  .describe('Sign-ins under the sender’s name; for a member, all of theirs.');
export type OwnSignIns = z.infer<typeof OwnSignIns>;

export const MemberSummary = z
  .object({
    id: z.string(),
    name: z.string(),
    email: z.string().nullable(),
    issuer: z.string().describe('The identity provider.'),
    role: Role.describe('The effective role: the given one, else that of their groups.'),
    groupRole: Role.describe('The role of their provider groups at their last sign-in.'),
    givenRole: Role.nullable().describe('The role an admin gave them instead; null if none.'),
    createdAt: z.number(),
    lastSignInAt: z.number(),
    blockedAt: z.number().nullable().describe('When they were blocked; null if they are not.'),
    signInCount: z.number().describe('Current sign-ins.'),
  })
  .describe('A person who has signed in with the identity provider.');
export type MemberSummary = z.infer<typeof MemberSummary>;

export const MemberResponse = z.object({ member: MemberSummary });

export const MemberList = z.object({
  members: z.array(MemberSummary),
  hasMore: z.boolean().describe('There are more than listed.'),
});
export type MemberList = z.infer<typeof MemberList>;

/** An absent field stays unchanged. `role: null` withdraws the given role: the provider's groups decide again. */
export const changeMemberSchema = z.strictObject({
  role: z.enum(MEMBER_ROLES).nullable().optional(),
  blocked: z.boolean().optional(),
});
export type ChangeMemberRequest = z.infer<typeof changeMemberSchema>;

export const AuditEntry = z.object({
  number: z.number().describe('Consecutive from 1. Numbers of removed entries are not reused.'),
  at: z.number(),
  actor: z.string(),
  actorKind: z.string(),
  role: z.string(),
  credentialId: z.string(),
  action: z.string(),
  agentId: z.string().nullable(),
  sessionId: z.string().nullable(),
  target: z.string().describe('The requested path.'),
  digest: z.string().describe('SHA-256 of the request, in hex.'),
  origin: z.string().describe('Origin of the page, or the program’s user agent.'),
  result: z.string().describe('`done`, or the error code.'),
  times: z
    .number()
    .describe('Repetitions: more than 1 if the same request was refused repeatedly; the newest is shown.'),
  hash: z.string().describe('SHA-256 over this entry and the previous hash, in hex.'),
});
export type AuditEntry = z.infer<typeof AuditEntry>;

/** An audit entry before it joins the hash chain. */
export type NewAuditEntry = Omit<AuditEntry, 'number' | 'hash'>;

export const AuditRemoved = z
  .object({
    upTo: z.number().describe('Number of the last removed entry: the chain starts with the next one.'),
    hash: z.string().describe('Hash of that entry.'),
    at: z.number().describe('Time of the removal.'),
  })
  .describe('The oldest entries, removed by retention (`INTERLUDE_AUDIT_RETENTION_DAYS`).');
export type AuditRemoved = z.infer<typeof AuditRemoved>;

export const AuditPage = z.object({
  entries: z.array(AuditEntry).describe('Newest first.'),
  removed: AuditRemoved.nullable().describe('Null if none was removed.'),
  next: z.number().nullable().describe('Cursor for `before`; null after the last page.'),
});
export type AuditPage = z.infer<typeof AuditPage>;

export const AuditCheck = z.object({
  entries: z.number().describe('Checked entries: all that exist.'),
  head: z
    .string()
    .describe('Hash of the newest entry. Keep a copy elsewhere to prove later that nothing before it changed.'),
  brokenAt: z
    .number()
    .nullable()
    .describe('Number of the first entry that does not match its predecessor; null if all do.'),
  removed: AuditRemoved.nullable().describe('Null if none was removed: then the chain starts with number 1.'),
});
export type AuditCheck = z.infer<typeof AuditCheck>;
