/** The anchor of a heading, as GitHub makes it: links in the documents are the same there and here. */
export function toGitHubSlug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-');
}
