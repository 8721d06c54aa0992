/** What a sandbox itself serves: commands, files and streams, each for a capability of the token. */
import type { ErrorCode } from '../errors.js';
import type { Route } from './route.js';

/** Connections that have not said who they are: past these, 503 with `Retry-After`. */
export const UNAUTHENTICATED_CONNECTIONS = { total: 256, perAddress: 32 } as const;

/** A WebSocket without a bearer header has this long to send its `auth` frame. */
export const AUTH_SECONDS = 5;

const FILE = '/files/{path}';
const BYTES = { media: 'application/octet-stream' } as const;
const TAR = { media: 'application/x-tar' } as const;

const ALWAYS = [
  'INVALID_REQUEST',
  'UNAUTHENTICATED',
  'CAPABILITY_DENIED',
  'RATE_LIMITED',
  'BACKEND_UNAVAILABLE',
  'INTERNAL',
] as const satisfies readonly ErrorCode[];

/** FORBIDDEN is a path that leaves the workspace by a link. */
const READING = [...ALWAYS, 'FORBIDDEN', 'NOT_FOUND', 'PRECONDITION_FAILED'] as const;
const RANGE = [...READING, 'RANGE_NOT_SATISFIABLE', 'NOT_ACCEPTABLE'] as const;
const WRITING = [...READING, 'PAYLOAD_TOO_LARGE', 'STORAGE_FULL'] as const;

export const DATAPLANE_ROUTES = {
  exec: {
    method: 'POST',
    path: '/v1/exec',
    family: 'exec',
    summary: 'Run a command and wait for it, or leave it running',
    auth: 'sandbox-token',
    capability: 'process',
    request: { shape: 'execRequest' },
    answers: { 200: [{ shape: 'commandResult' }], 202: [{ shape: 'commandState' }] },
    errors: [...ALWAYS, 'PAYLOAD_TOO_LARGE'],
    idempotent: false,
  },
  uploadFile: {
    method: 'POST',
    path: '/v1/files/upload',
    family: 'files',
    summary: 'Write a file, or unpack a tar into a folder',
    auth: 'sandbox-token',
    capability: 'fs:rw',
    query: 'uploadQuery',
    headers: ['If-Match', 'If-None-Match'],
    request: BYTES,
    answers: { 200: [{ shape: 'writtenFile' }], 201: [{ shape: 'writtenFile' }] },
    errors: WRITING,
    idempotent: true,
  },
  downloadFile: {
    method: 'GET',
    path: '/v1/files/download',
    family: 'files',
    summary: 'Read a file, or a folder as a tar',
    auth: 'sandbox-token',
    capability: 'fs:ro',
    query: 'downloadQuery',
    headers: ['If-Match', 'If-None-Match', 'Range'],
    answers: { 200: [BYTES, TAR], 206: [BYTES], 304: [] },
    errors: RANGE,
    idempotent: true,
  },
  readFile: {
    method: 'GET',
    path: FILE,
    family: 'files',
    summary: 'Read a file; list a folder, or get it as a tar',
    auth: 'sandbox-token',
    capability: 'fs:ro',
    query: 'fileQuery',
    headers: ['If-Match', 'If-None-Match', 'Range'],
    answers: {
      200: [BYTES, { shape: 'folderPage' }, TAR],
      206: [BYTES],
      304: [],
    },
    errors: RANGE,
    idempotent: true,
  },
  statFile: {
    method: 'HEAD',
    path: FILE,
    family: 'files',
    summary: 'Look at a file without reading it',
    auth: 'sandbox-token',
    capability: 'fs:ro',
    headers: ['If-Match', 'If-None-Match'],
    answers: { 200: [], 304: [] },
    errors: READING,
    idempotent: true,
  },
  writeFile: {
    method: 'PUT',
    path: FILE,
    family: 'files',
    summary: 'Replace a file whole, or make it',
    auth: 'sandbox-token',
    capability: 'fs:rw',
    headers: ['If-Match', 'If-None-Match'],
    request: BYTES,
    answers: { 200: [{ shape: 'writtenFile' }], 201: [{ shape: 'writtenFile' }] },
    errors: WRITING,
    idempotent: true,
  },
  deleteFile: {
    method: 'DELETE',
    path: FILE,
    family: 'files',
    summary: 'Delete a file or a folder',
    auth: 'sandbox-token',
    capability: 'fs:rw',
    headers: ['If-Match'],
    answers: { 204: [] },
    errors: READING,
    idempotent: true,
  },
  shellSocket: {
    method: 'WS',
    path: '/v1/shell/ws',
    family: 'sockets',
    summary: 'Open, rejoin or watch a shell',
    auth: 'sandbox-token',
    capability: 'shell:ro',
    writes: 'shell',
    errors: ALWAYS,
  },
  shellSocketByThread: {
    method: 'WS',
    path: '/ws',
    family: 'sockets',
    summary: "The same under S3's name",
    auth: 'sandbox-token',
    capability: 'shell:ro',
    writes: 'shell',
    errors: ALWAYS,
  },
  execSocket: {
    method: 'WS',
    path: '/v1/exec/ws',
    family: 'sockets',
    summary: 'Run a command with its streams apart',
    auth: 'sandbox-token',
    capability: 'process',
    errors: ALWAYS,
  },
  syncSocket: {
    method: 'WS',
    path: '/v1/sync/ws',
    family: 'sockets',
    summary: 'Scan, watch, stage and change one root',
    auth: 'sandbox-token',
    capability: 'fs:ro',
    writes: 'fs:rw',
    errors: [...ALWAYS, 'STORAGE_FULL'],
  },
  tunnelSocket: {
    method: 'WS',
    path: '/v1/tunnel/ws',
    family: 'sockets',
    summary: 'Reach a TCP port inside the sandbox',
    auth: 'sandbox-token',
    capability: 'tunnel',
    errors: [...ALWAYS, 'FORBIDDEN'],
  },
} as const satisfies Record<string, Route>;
