import { connect } from 'node:net';

/**
 * Stands where `codex app-server` is started: what it reads and writes is the test's own, over a socket that is named in
 * its first argument.
 */
const socket = connect(process.argv[2] ?? '');
process.stdin.pipe(socket);
socket.pipe(process.stdout);
socket.on('close', () => process.exit(0));
socket.on('error', () => process.exit(1));
