import { testEngines } from './test-engine.ts';

/** What cannot be told from our own asking once it is undone: docs/endpoints.md says so where it describes `progressive_usage`. */
const CANNOT_BE_UNDONE = new Set(['chat, usage:null beside usage', 'chat, usage for everybody']);

testEngines((name) => ['vllm', 'sglang'].includes(name), { progressive_usage: true }, CANNOT_BE_UNDONE);
