import { isBeneath } from '@interlude/protocol/base-path.mjs';
import { AppError } from '@interlude/protocol/errors';

/** Everybody whom the provider signs in. */
export const EVERYBODY = '*';

/** What is set of the identity provider, and who may what. */
export interface OidcSettings {
  /** As it was set: the provider has to call itself just that. */
  issuer: string;
  clientId: string;
  clientSecret: string;
  /** How the secret is sent; null: as the provider says it takes it. */
  clientAuth: 'basic' | 'post' | null;
  scopes: string;
  /** The claim that lists a person's groups. A dot may lead into an object, as in `realm_access.roles`. */
  groupsClaim: string;
  adminGroups: readonly string[];
  operatorGroups: readonly string[];
  viewerGroups: readonly string[];
  /** An email address or a subject that is an admin, whatever its groups; null for nobody. */
  firstAdmin: string | null;
  /** Where browsers find this server, without a slash at its end. */
  publicUrl: string;
}

type Env = Record<string, string | undefined>;

/**
 * What the environment says of the identity provider; null if it names none. Start-up code puts the content of
 * INTERLUDE_OIDC_CLIENT_SECRET_FILE into INTERLUDE_OIDC_CLIENT_SECRET.
 *
 * @throws AppError `unavailable`, in one line that names the variable: a server that lets people in by settings that
 * make no sense must not start.
 */
export function oidcSettings(env: Env): OidcSettings | null {
  const issuer = text(env, 'INTERLUDE_OIDC_ISSUER');
  if (issuer === '') {
    const other = Object.keys(env).find((name) => name.startsWith('INTERLUDE_OIDC_') && text(env, name) !== '');
    if (other === undefined) return null;
    throw refused('INTERLUDE_OIDC_ISSUER', `is not set, but ${other} is. Set it to the address of your provider`);
  }
  checkIssuer(issuer);
  const settings: OidcSettings = {
    issuer,
    clientId: required(env, 'INTERLUDE_OIDC_CLIENT_ID'),
    clientSecret: required(env, 'INTERLUDE_OIDC_CLIENT_SECRET'),
    clientAuth: clientAuthOf(text(env, 'INTERLUDE_OIDC_CLIENT_AUTH')),
    scopes: scopesOf(text(env, 'INTERLUDE_OIDC_SCOPES') || 'openid profile email'),
    groupsClaim: text(env, 'INTERLUDE_OIDC_GROUPS_CLAIM') || 'groups',
    adminGroups: list(env, 'INTERLUDE_OIDC_ADMIN_GROUPS'),
    operatorGroups: list(env, 'INTERLUDE_OIDC_OPERATOR_GROUPS'),
    viewerGroups: list(env, 'INTERLUDE_OIDC_VIEWER_GROUPS'),
    firstAdmin: text(env, 'INTERLUDE_FIRST_ADMIN') || null,
    publicUrl: publicUrlOf(required(env, 'INTERLUDE_PUBLIC_URL'), text(env, 'INTERLUDE_BASE_PATH')),
  };
  const { adminGroups, operatorGroups, viewerGroups, firstAdmin } = settings;
  if (firstAdmin === null && adminGroups.length + operatorGroups.length + viewerGroups.length === 0) {
    throw refused('INTERLUDE_OIDC_ADMIN_GROUPS', 'and its like are not set, so nobody could come in. Set one of them');
  }
  return settings;
}

/** Whether an address leads to this very machine, where requests need no TLS. */
export function isLoopback(url: URL): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname);
}

function checkIssuer(issuer: string): void {
  const url = URL.canParse(issuer) ? new URL(issuer) : null;
  const isSafe = url !== null && (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url)));
  if (!isSafe) {
    throw refused('INTERLUDE_OIDC_ISSUER', 'is not an https address (http is taken on this machine only). Correct it');
  }
  if (url.pathname.includes('/.well-known/')) {
    throw refused('INTERLUDE_OIDC_ISSUER', 'names a document. Leave off /.well-known/ and what follows');
  }
  if (hasMoreThanPath(issuer, url)) {
    throw refused('INTERLUDE_OIDC_ISSUER', 'has a name, a password, a query or a fragment in it. Leave that off');
  }
}

function publicUrlOf(address: string, basePath: string): string {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || hasMoreThanPath(address, url)) {
    throw refused('INTERLUDE_PUBLIC_URL', 'is not an address such as https://interlude.example.com. Correct it');
  }
  if (!isBeneath(address, basePath)) {
    throw refused(
      'INTERLUDE_PUBLIC_URL',
      `does not end in ${basePath}, as INTERLUDE_BASE_PATH says. Correct one of them`,
    );
  }
  // As a browser writes it: what is registered at the provider is compared sign by sign.
  return url.href.replace(/\/+$/, '');
}

function hasMoreThanPath(address: string, url: URL): boolean {
  return /[?#]/.test(address) || url.username !== '' || url.password !== '';
}

function clientAuthOf(value: string): OidcSettings['clientAuth'] {
  if (value === '') return null;
  if (value === 'basic' || value === 'post') return value;
  throw refused('INTERLUDE_OIDC_CLIENT_AUTH', 'is neither "basic" nor "post". Leave it out, or set it to one of them');
}

function scopesOf(value: string): string {
  const scopes = value.split(/[\s,]+/);
  if (scopes.includes('openid')) return scopes.join(' ');
  throw refused('INTERLUDE_OIDC_SCOPES', 'lacks openid, without which the provider does not say who came. Add it');
}

function required(env: Env, name: string): string {
  const value = text(env, name);
  if (value === '') throw refused(name, 'is not set. INTERLUDE_OIDC_ISSUER is, and needs it');
  return value;
}

function list(env: Env, name: string): string[] {
  const names = (env[name] ?? '').split(',').map((one) => one.trim());
  return names.filter((one) => one !== '');
}

function text(env: Env, name: string): string {
  return env[name]?.trim() ?? '';
}

function refused(name: string, what: string): AppError {
  return new AppError('unavailable', `${name} ${what}.`);
}
