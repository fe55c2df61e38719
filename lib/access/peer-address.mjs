/**
 * Appends the address of the connection to `X-Forwarded-For`, as every proxy does. The last entry is then one that no
 * client can choose.
 *
 * @param {Pick<import('node:http').IncomingMessage, 'headers' | 'socket'>} request
 */
export function notePeerAddress({ headers, socket }) {
  const given = headers['x-forwarded-for'];
  const peer = socket.remoteAddress ?? '';
  headers['x-forwarded-for'] = given === undefined ? peer : `${given}, ${peer}`;
}
