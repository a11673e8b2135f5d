// An editor with VS Code's protocol library: starts a language server, and stores the open documents.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import lsp from 'vscode-languageserver-protocol/node';
import { TextDocument } from 'vscode-languageserver-textdocument';

/** Starts a server and connects to it over this channel: `stdio`, `pipe` or `socket`. */
export async function start(program, channel) {
  const { args, streams } = await listen(channel);
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  process.on('exit', () => child.kill());
  const exited = once(child, 'exit');
  const failed = once(child, 'error').then(([error]) => { throw error; });
  const [reader, writer] = await Promise.race([streams(child), failed]);

  // The library reports here messages that match no call, such as a response to a notification.
  const complaints = [];
  const complain = (complaint) => complaints.push(complaint);
  const logger = { error: complain, warn: complain, info() {}, log() {} };
  const connection = lsp.createProtocolConnection(reader, writer, logger);
  connection.onError(([error]) => complain(error.message));
  connection.listen();
  return { connection, exited, complaints };
}

/** The argument for a channel, and the streams once the server has connected. */
async function listen(channel) {
  switch (channel) {
    case 'stdio':
      return {
        args: ['--stdio'],
        streams: async ({ stdout, stdin }) => [new lsp.StreamMessageReader(stdout), new lsp.StreamMessageWriter(stdin)],
      };
    case 'pipe': {
      const path = lsp.generateRandomPipeName();
      const transport = await lsp.createClientPipeTransport(path);
      return { args: [`--pipe=${path}`], streams: () => transport.onConnected() };
    }
    case 'socket': {
      const listener = createServer().listen(0, '127.0.0.1');
      await once(listener, 'listening');
      const streams = async () => {
        const [socket] = await once(listener, 'connection');
        listener.close();
        return [new lsp.SocketMessageReader(socket), new lsp.SocketMessageWriter(socket)];
      };
      return { args: [`--socket=${listener.address().port}`], streams };
    }
    default:
      throw new Error(`unknown channel ${channel}: use stdio, pipe or socket`);
  }
}

/** The error that a request ends in. */
export function failure(request) {
  return request.then(
    (result) => ({ result }),
    ({ code, message }) => ({ code, message }),
  );
}

/** A document that is open in the editor and in the server. */
export class OpenDocument {
  constructor(connection, text) {
    this.connection = connection;
    this.now = TextDocument.create('file:///notes/a%20b.txt', 'plaintext', 1, text);
  }

  get uri() {
    return this.now.uri;
  }

  get text() {
    return this.now.getText();
  }

  async open() {
    const { uri, languageId, version } = this.now;
    await this.connection.sendNotification(lsp.DidOpenTextDocumentNotification.type, {
      textDocument: { uri, languageId, version, text: this.text },
    });
  }

  /** Replaces text between two offsets in UTF-16, here and in the server. */
  async replace(start, end, text) {
    const range = { start: this.now.positionAt(start), end: this.now.positionAt(end) };
    await this.change([{ range, text }]);
  }

  /** Applies the edits of the server. Their ranges refer to the text before all of them. */
  async apply(edits) {
    await this.change([{ text: TextDocument.applyEdits(this.now, edits) }]);
  }

  async change(contentChanges) {
    this.now = TextDocument.update(this.now, contentChanges, this.now.version + 1);
    const textDocument = { uri: this.uri, version: this.now.version };
    await this.connection.sendNotification(lsp.DidChangeTextDocumentNotification.type, { textDocument, contentChanges });
  }

  /** The ranges of a word that stands alone. */
  places(word) {
    const alone = new RegExp(`(?<!\\p{Alphabetic})${word}(?!\\p{Alphabetic})`, 'gu');
    return [...this.text.matchAll(alone)].map(({ index }) => ({
      start: this.now.positionAt(index),
      end: this.now.positionAt(index + word.length),
    }));
  }
}
