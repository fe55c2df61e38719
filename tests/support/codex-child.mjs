import { connect } from 'node:net';

/**
 * Runs in place of `codex app-server`. Bridges stdin and stdout to the test over the socket named in its first
 * argument.
 */
const socket = connect(process.argv[2] ?? '');
process.stdin.pipe(socket);
socket.pipe(process.stdout);
socket.on('close', () => process.exit(0));
socket.on('error', () => process.exit(1));
