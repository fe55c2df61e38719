import { AppError } from '@interlude/protocol/errors';
import { formText } from '@/lib/server/access/form-text';

/** A logout token has less than 2 KiB. */
const MAX_FORM_BYTES = 32 * 1024;

/**
 * The logout token in a form that a provider, or anybody, posts.
 *
 * @throws AppError `malformed`, `too_large`
 */
export async function logoutTokenIn(request: Request): Promise<string> {
  const form = new URLSearchParams(await formText(request, 'logout', MAX_FORM_BYTES));
  const [token, ...more] = form.getAll('logout_token');
  if (token !== undefined && token !== '' && more.length === 0) return token;
  throw new AppError('malformed', 'A back-channel logout is a form with one field, logout_token. Send that.');
}
